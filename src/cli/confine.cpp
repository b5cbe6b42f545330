// SPDX-License-Identifier: Apache-2.0
#include "cli/confine.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <new>
#include <optional>

#include "base/bounds.hpp"
#include "base/child_process.hpp"
#include "base/error.hpp"
#include "cli/output.hpp"

namespace assay::cli {
namespace {

/// In the child. What it prints goes to `said`: a C library that stops a damaged process adds lines of its
/// own.
int run_child(const std::function<ExitCode()>& command, std::uint64_t bytes, const CapturedOutput& said) {
  said.redirect(STDERR_FILENO);
  bound_process(bytes);
  ExitCode code = ExitCode::internal;
  try {
    code = command();
  } catch (const std::bad_alloc&) {
    print_error("the file needs more memory than there is");
    code = ExitCode::usage;
  } catch (const std::exception& e) {
    print_error(std::string("internal error: ") + e.what());
  } catch (...) {
    print_error("internal error: unknown exception");
  }
  std::fflush(nullptr);
  return static_cast<int>(code);
}

}  // namespace

ExitCode confined(const std::vector<std::string>& inputs, const std::function<ExitCode()>& command,
                  unsigned weight) {
  const std::uint64_t bytes = weight * input_bytes(inputs);
  std::optional<CapturedOutput> said;
  std::optional<ChildProcess> child;
  try {
    said.emplace();
    child.emplace("a reading process", [&] { return run_child(command, bytes, *said); });
  } catch (const Error&) {  // no more processes here: no worse than without a child
    return command();
  }
  const int status = child->wait();
  if (!WIFEXITED(status)) throw Error(ErrorKind::data, describe_lost_reader(inputs, WTERMSIG(status)));
  said->copy_to(stderr);
  return static_cast<ExitCode>(WEXITSTATUS(status));
}

}  // namespace assay::cli
