// SPDX-License-Identifier: Apache-2.0
// A process that reads a hostile file and has been taken over by it gets nowhere.
#include "base/confined.hpp"
#include "base/child_process.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#ifdef ASSAY_HAS_SECCOMP
#include <seccomp.h>
#endif
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "base/error.hpp"
#include "base/reading_filter.hpp"
#include "results/archive.hpp"

namespace assay {
namespace {

using testing::HasSubstr;

template <class Message>
void expect_error(ErrorKind kind, const Message& message, const std::function<void()>& act) {
  try {
    act();
    ADD_FAILURE() << "no error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), message);
  }
}

/// What the reading process found out.
int told(const std::function<int()>& read) {
  int value = -1;
  read_confined(
      {"evil.h5"},
      [&](const Inputs&, Sink& sink) {
        const int v = read();
        sink.write(&v, sizeof v);
      },
      [&](Source& source) { source.read(&value, sizeof value); });
  return value;
}

/// A reading process that says these bytes instead of an archive.
template <class T>
void unpack_from(const std::function<void(Sink&)>& say) {
  T value{};
  read_confined(
      {"evil.h5"}, [&](const Inputs&, Sink& sink) { say(sink); },
      [&](Source& source) { results::Unpacker(source).get(value); });
}

class Confined : public testing::Test {
 protected:
  void SetUp() override {
#ifndef ASSAY_HAS_SECCOMP
    GTEST_SKIP() << "no libseccomp where this was built";
#endif
    if (!std::filesystem::exists("/proc/sys/kernel/seccomp"))
      GTEST_SKIP() << "the kernel filters no system calls";
  }
};

TEST_F(Confined, HasNoNetwork) {
  expect_error(ErrorKind::data, HasSubstr("forbidden system call"),
               [] { told([] { return ::socket(AF_INET, SOCK_STREAM, 0); }); });
  expect_error(ErrorKind::data, HasSubstr("evil.h5"), [] {
    told([] {
      int ends[2];
      return ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    });
  });
}

TEST_F(Confined, MakesNoFile) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("assay-confined-" + std::to_string(getpid()))).string();
  const auto outcome = [](int result) { return result < 0 ? errno : 0; };
  EXPECT_EQ(told([&] { return outcome(::open(file.c_str(), O_WRONLY | O_CREAT, 0666)); }), EPERM);
  EXPECT_EQ(told([&] { return outcome(::mkdir(file.c_str(), 0777)); }), EPERM);
  EXPECT_EQ(told([&] { return outcome(::symlink("/etc/passwd", file.c_str())); }), EPERM);
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(told([&] { return outcome(::open("/dev/null", O_RDWR)); }), EPERM);
  EXPECT_EQ(told([&] { return outcome(::unlink("/nowhere/at/all")); }), EPERM);
}

TEST_F(Confined, OpensNothing) {
  const auto outcome = [](long result) { return result < 0 ? errno : 0; };
  EXPECT_EQ(told([&] { return outcome(::open("/dev/null", O_RDONLY)); }), EPERM);
  EXPECT_EQ(told([&] { return outcome(::openat(AT_FDCWD, "/etc/passwd", O_RDONLY | O_CLOEXEC)); }), EPERM);
  EXPECT_EQ(told([&] { return outcome(::syscall(SYS_open, "/", O_RDONLY | O_DIRECTORY)); }), EPERM);
#ifdef SYS_openat2
  EXPECT_EQ(told([&] {
              std::uint64_t how[3] = {O_RDONLY, 0, 0};
              return outcome(::syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", how, sizeof how));
            }),
            EPERM);
#endif
  EXPECT_EQ(told([&] { return outcome(::access("/etc/passwd", R_OK)); }), EPERM);
  EXPECT_EQ(told([&] {
              char to[64];
              return outcome(::readlink("/proc/self/exe", to, sizeof to));
            }),
            EPERM);
  EXPECT_EQ(told([&] {
              struct stat info;
              return outcome(::stat("/etc/passwd", &info));
            }),
            EPERM);
}

TEST(Reading, GetsTheFilesThatItWasGivenAndSaysWhichItHasNot) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("assay-input-" + std::to_string(getpid()))).string();
  std::ofstream(file) << "content";
  std::string text, why;
  read_confined(
      {file, file + ".none", "/"},
      [](const Inputs& inputs, Sink& sink) {
        results::Packer out(sink);
        out.put(inputs[0].text());
        std::string said;
        for (std::size_t i = 1; i < inputs.size(); ++i) {
          try {
            said += inputs[i].text();
          } catch (const Error& error) {
            said += error.what() + std::string("; ");
          }
        }
        out.put(said);
      },
      [&](Source& source) {
        results::Unpacker in(source);
        in.get(text), in.get(why);
      });
  std::filesystem::remove(file);
  EXPECT_EQ(text, "content");
  EXPECT_EQ(why, "cannot read " + file + ".none: No such file or directory; / is not a file; ");
}

/// A FIFO that nobody writes to, and a device without an end.
TEST(Reading, WaitsForNoFile) {
  const std::string fifo =
      (std::filesystem::temp_directory_path() / ("assay-fifo-" + std::to_string(getpid()))).string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& file : {fifo, std::string("/dev/zero")})
    expect_error(ErrorKind::data, HasSubstr("is not a file"), [&] {
      read_confined(
          {file}, [](const Inputs& inputs, Sink&) { inputs[0].text(); },
          [](Source& source) { source.finish(); });
    });
  ::unlink(fifo.c_str());
}

#ifdef ASSAY_HAS_SECCOMP
/// As in a container whose own filter forbids further ones.
TEST_F(Confined, SaysWhenThereIsNoFilter) {
  ChildProcess child("a process with a filter", [] {
    const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(seccomp), 0);
    seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prctl), 1,
                     SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP));
    if (seccomp_load(filter) != 0) return 2;
    return describe_confinement().find("without a filter") != std::string::npos ? 0 : 1;
  });
  EXPECT_EQ(exit_code_of(child.wait()), 0);
}
#endif

TEST_F(Confined, StartsNothing) {
  expect_error(ErrorKind::data, HasSubstr("forbidden system call"),
               [] { told([] { return static_cast<int>(::fork()); }); });
  expect_error(ErrorKind::data, HasSubstr("forbidden system call"),
               [] { told([] { return std::system("true"); }); });
  EXPECT_EQ(told([] { return ::kill(getppid(), SIGTERM) == 0 ? 0 : errno; }), EPERM);
}

TEST(Reading, HasNoDescriptorOfThisProcess) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(told([&] { return ::write(ends[1], "x", 1) == 1 ? 0 : errno; }), EBADF);
  close(ends[0]);
  close(ends[1]);
}

TEST(Reading, ErrorsKeepTheirKind) {
  expect_error(ErrorKind::usage, HasSubstr("no such file"),
               [] { told([]() -> int { throw_usage("there is no such file"); }); });
  expect_error(ErrorKind::data, HasSubstr("evil.h5: reading it crashes (signal 6)"),
               [] { told([]() -> int { std::abort(); }); });
  // What a taken over process says cannot act on a terminal.
  expect_error(ErrorKind::data, testing::Not(HasSubstr("\x1b")),
               [] { told([]() -> int { throw Error(ErrorKind::data, "\x1b[2J\n"); }); });
}

TEST(Reading, LengthsAreNotBelieved) {
  expect_error(ErrorKind::data, HasSubstr("incomplete"), [] {
    unpack_from<std::vector<double>>([](Sink& sink) {
      const std::uint64_t promised = std::numeric_limits<std::uint64_t>::max() / 16;
      sink.write(&promised, sizeof promised);
    });
  });
  expect_error(ErrorKind::data, HasSubstr("length"), [] {
    unpack_from<results::CaseData>([](Sink& sink) {
      results::CaseData data;
      data.entity = {0};
      data.metrics.push_back(
          {"rate", "B/s", results::Better::higher, true, results::Role::metric, true, {1, 2, 3}});
      results::Packer(sink).put(data);
    });
  });
  expect_error(ErrorKind::data, HasSubstr("too deeply"), [] {
    unpack_from<Json>([](Sink& sink) {
      const std::uint64_t one = 1;
      for (int i = 0; i < 1'000'000; ++i) {
        const auto kind = static_cast<std::uint8_t>(Json::value_t::array);
        sink.write(&kind, 1);
        sink.write(&one, sizeof one);
      }
    });
  });
}

TEST(Reading, WhatIsSaidIsBounded) {
  expect_error(ErrorKind::data, HasSubstr("more than its size can"), [] {
    std::vector<char> piece(1 << 20);
    read_confined(
        {"evil.h5"},
        [&](const Inputs&, Sink& sink) {
          for (;;) sink.write(piece.data(), piece.size());
        },
        [&](Source& source) {
          for (;;) source.read(piece.data(), piece.size());
        });
  });
}

TEST(Reading, ArchivesCarryEveryMember) {
  results::CaseData data;
  data.suite = "gemm", data.name = "a", data.state = results::CaseState::fail, data.required = true;
  data.parameters = {
      {"n", 4096}, {"odd", std::numeric_limits<double>::infinity()}, {"list", {1, -2, "x", nullptr, true}}};
  data.entity = {0, 1}, data.count = {1, 1}, data.sample = {0}, data.block = {0},
  data.t = {0.5, results::not_taken};
  data.metrics.push_back(
      {"rate", "B/s", results::Better::higher, true, results::Role::covariate, true, {1, 2}});
  data.arrays.push_back({"digest", {"entity"}, {2}, {~0ULL, 7}});
  results::CaseData got;
  read_confined(
      {}, [&](const Inputs&, Sink& sink) { results::Packer(sink).put(data); },
      [&](Source& source) { results::Unpacker(source).get(got); });
  EXPECT_EQ(got.path(), "gemm/a");
  EXPECT_EQ(got.state, results::CaseState::fail);
  EXPECT_EQ(got.parameters, data.parameters);
  EXPECT_EQ(got.entity, data.entity);
  EXPECT_TRUE(std::isnan(got.t[1]));
  ASSERT_EQ(got.metrics.size(), 1u);
  EXPECT_EQ(got.metrics[0].role, results::Role::covariate);
  EXPECT_EQ(got.metrics[0].values, data.metrics[0].values);
  ASSERT_EQ(got.arrays.size(), 1u);
  EXPECT_EQ(got.arrays[0].values, data.arrays[0].values);
  EXPECT_EQ(got.arrays[0].shape, data.arrays[0].shape);
}

}  // namespace
}  // namespace assay
