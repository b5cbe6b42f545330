// SPDX-License-Identifier: Apache-2.0
#include "base/reading_filter.hpp"

#ifdef ASSAY_HAS_SECCOMP
#include <fcntl.h>
#include <seccomp.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <type_traits>
#endif

namespace assay {

#ifdef ASSAY_HAS_SECCOMP
namespace {

/// Reading what is open, memory, time, and the way out. What libraries try beyond that, such as the time zone
/// or the number of processors, fails without harm.
constexpr int allowed[] = {SCMP_SYS(read),         SCMP_SYS(pread64),
                           SCMP_SYS(write),        SCMP_SYS(close),
                           SCMP_SYS(fstat),        SCMP_SYS(munmap),
                           SCMP_SYS(mremap),       SCMP_SYS(madvise),
                           SCMP_SYS(brk),          SCMP_SYS(futex),
                           SCMP_SYS(getrandom),    SCMP_SYS(clock_gettime),
                           SCMP_SYS(gettimeofday), SCMP_SYS(time),
                           SCMP_SYS(getpid),       SCMP_SYS(gettid),
                           SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
                           SCMP_SYS(rt_sigreturn), SCMP_SYS(restart_syscall),
                           SCMP_SYS(exit),         SCMP_SYS(exit_group),
                           SCMP_SYS(sigaltstack)};  // the last one for AddressSanitizer, at every throw

/// Calls that only injected code would make here.
constexpr int deadly[] = {SCMP_SYS(socket),
                          SCMP_SYS(socketpair),
                          SCMP_SYS(connect),
                          SCMP_SYS(bind),
                          SCMP_SYS(listen),
                          SCMP_SYS(accept),
                          SCMP_SYS(accept4),
                          SCMP_SYS(sendto),
                          SCMP_SYS(sendmsg),
                          SCMP_SYS(execve),
                          SCMP_SYS(execveat),
                          SCMP_SYS(fork),
                          SCMP_SYS(vfork),
                          SCMP_SYS(clone),
                          SCMP_SYS(clone3),
                          SCMP_SYS(ptrace),
                          SCMP_SYS(process_vm_writev)};

bool add_rules(scmp_filter_ctx filter) {
  bool good = true;
  const auto add = [&](std::uint32_t action, int call, auto... conditions) {
    const int result = seccomp_rule_add(filter, action, call, sizeof...(conditions), conditions...);
    // A call that this machine does not have (time on Arm) needs no rule.
    good = good && (result == 0 || result == -EDOM || result == -EINVAL);
  };
  const auto cmp = [](unsigned argument, std::uint64_t mask, std::uint64_t value) {
    return scmp_arg_cmp{argument, SCMP_CMP_MASKED_EQ, mask, value};
  };
  for (const int call : allowed) add(SCMP_ACT_ALLOW, call);
  for (const int call : deadly) add(SCMP_ACT_KILL_PROCESS, call);
  // fstat of newer C libraries. The filter cannot see that the path is empty: size and times of other files
  // remain visible.
  add(SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), scmp_arg_cmp{3, SCMP_CMP_EQ, AT_EMPTY_PATH, 0});
  constexpr std::uint64_t executable = 4;  // PROT_EXEC
  add(SCMP_ACT_ALLOW, SCMP_SYS(mmap), cmp(2, executable, 0));
  add(SCMP_ACT_ALLOW, SCMP_SYS(mprotect), cmp(2, executable, 0));
  // abort() signals its own process.
  add(SCMP_ACT_ALLOW, SCMP_SYS(tgkill),
      scmp_arg_cmp{0, SCMP_CMP_EQ, static_cast<std::uint64_t>(::getpid()), 0});
  return good;
}

}  // namespace

bool install_reading_filter() noexcept {
  const std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, void (*)(scmp_filter_ctx)> filter(
      seccomp_init(SCMP_ACT_ERRNO(EPERM)), seccomp_release);
  return filter && add_rules(filter.get()) && seccomp_load(filter.get()) == 0;
}

std::string reading_filter_version() {
  const scmp_version* v = seccomp_version();
  return "libseccomp " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
         std::to_string(v->micro);
}
#else
bool install_reading_filter() noexcept { return false; }
std::string reading_filter_version() { return "not built: no libseccomp where this was built"; }
#endif

}  // namespace assay
