// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.hpp"

int main(int argc, char** argv) { return assay::cli_main(argc, argv); }
