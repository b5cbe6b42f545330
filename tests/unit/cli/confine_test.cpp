// SPDX-License-Identifier: Apache-2.0
// A command that reads a hostile file ends in one line, whatever the reading does.
#include "cli/confine.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <vector>

#include "tests/unit/expect_error.hpp"

namespace assay::cli {
namespace {

std::string failure(const std::function<ExitCode()>& command) {
  try {
    confined({"evil.h5"}, command);
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), ExitCode::usage);
    return e.what();
  }
  return "no error";
}

TEST(Confine, GivesTheExitCodeBack) {
  const pid_t here = getpid();
  EXPECT_EQ(confined({"x.h5"}, [] { return ExitCode::fail; }), ExitCode::fail);
  EXPECT_EQ(confined({"x.h5"}, [&] { return getpid() != here ? ExitCode::warn : ExitCode::pass; }),
            ExitCode::warn);
  EXPECT_EQ(confined({"x.h5"}, []() -> ExitCode { throw std::runtime_error("a bug"); }), ExitCode::internal);
}

TEST(Confine, ACrashIsOneLine) {
  EXPECT_THAT(failure([]() -> ExitCode { std::abort(); }),
              testing::AllOf(testing::HasSubstr("evil.h5: reading it crashes (signal 6)"),
                             testing::Not(testing::HasSubstr("\n"))));
}

TEST(Confine, AnEndlessLoopEnds) {
  const auto endless = []() -> ExitCode {
    const rlimit soon{1, 1};  // sooner than usual
    setrlimit(RLIMIT_CPU, &soon);
    while (getpid() > 0) {
    }
    return ExitCode::pass;
  };
  EXPECT_THAT(failure(endless), testing::HasSubstr("evil.h5: reading it does not end"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Confine, MemoryIsBounded) {
  const auto greedy = [] {
    const std::vector<char> much(std::size_t{8} << 30);
    return much[0] == 0 ? ExitCode::pass : ExitCode::fail;
  };
  EXPECT_EQ(confined({"evil.h5"}, greedy), ExitCode::usage);
}
#endif

}  // namespace
}  // namespace assay::cli
