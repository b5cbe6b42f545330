// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

namespace assay {

/// The exit codes of the command-line contract. All ranks of a run leave with the same one.
enum class ExitCode : int {
  pass = 0,          ///< PASS; warnings may have been printed
  warn = 1,          ///< WARN, only under --strict (launchers use 1 too, so it never means a fault)
  fail = 2,          ///< at least one confirmed fault, and it is named
  inconclusive = 3,  ///< required evidence is missing
  usage = 4,         ///< bad option, configuration or input file
  internal = 5,      ///< a bug in assay
};

/// The exit code of two parts of a run together: FAIL before an error of the program, before INCONCLUSIVE,
/// before WARN, before PASS.
constexpr int worse_code(int a, int b) noexcept {
  for (const int code : {2, 5, 4, 3, 1})
    if (a == code || b == code) return code;
  return 0;
}

}  // namespace assay
