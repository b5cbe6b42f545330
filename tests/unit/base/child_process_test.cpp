// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"

namespace assay {
namespace {

TEST(ChildProcess, EndsWithTheValueOfItsFunction) {
  ChildProcess child("a child", [] { return 42; });
  EXPECT_EQ(exit_code_of(child.wait()), 42);
  EXPECT_EQ(exit_code_of(child.wait()), 42) << "a second wait gives the same status";
  ASSERT_TRUE(child.ended());
}

TEST(ChildProcess, AnExceptionIsPrintedAndIsAnInternalError) {
  const CapturedOutput out;
  ChildProcess child("a child", [&]() -> int {
    out.redirect(STDERR_FILENO);
    throw Error(ErrorKind::data, "bad input");
  });
  EXPECT_EQ(exit_code_of(child.wait()), static_cast<int>(ExitCode::internal));
  EXPECT_EQ(out.text(), "assay: bad input\n");
}

TEST(ChildProcess, IsKilledAfterItsGrace) {
  ChildProcess child("a child", [] {
    pause();
    return 0;
  });
  EXPECT_FALSE(child.ended());
  const int status = child.wait_or_kill(20);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(exit_code_of(status), 128 + SIGKILL);
}

TEST(ChildProcess, DoesNotOutliveItsParent) {
  int line[2];
  ASSERT_EQ(pipe2(line, O_CLOEXEC), 0);
  ChildProcess parent("a parent", [] {
    static ChildProcess grandchild("a grandchild", [] {
      alarm(60);
      pause();
      return 0;
    });
    return 0;
  });
  close(line[1]);
  parent.wait();
  alarm(20);  // the read below ends once nobody holds the other end
  char byte = 0;
  EXPECT_EQ(read(line[0], &byte, 1), 0);
  alarm(0);
  close(line[0]);
}

TEST(CapturedOutput, HoldsMoreThanAPipeWould) {
  const CapturedOutput out;
  const std::string line(1000, 'x');
  ChildProcess child("a child", [&] {
    out.redirect(STDOUT_FILENO);
    for (int i = 0; i < 500; ++i)
      if (write(STDOUT_FILENO, line.data(), line.size()) != 1000) return 1;
    return 0;
  });
  EXPECT_EQ(exit_code_of(child.wait()), 0);
  EXPECT_EQ(out.text().size(), 500'000u);
  std::FILE* copy = std::tmpfile();
  out.copy_to(copy);
  EXPECT_EQ(std::ftell(copy), 500'000);
  std::fclose(copy);
}

}  // namespace
}  // namespace assay
