// SPDX-License-Identifier: Apache-2.0
// The stack of a stuck worker: its signal handler writes return addresses to the heartbeat page, its
// supervisor names them.
#pragma once

#include <sys/types.h>

#include <string>

#include "supervisor/heartbeat.hpp"

namespace assay::supervisor {

/// In the worker: from now on the main thread answers the trace signal by writing its stack to `heartbeat`.
void answer_trace_requests(Heartbeat& heartbeat);
/// In the supervisor: requests the stack. A stopped worker is continued, because it cannot answer otherwise;
/// it will be ended.
void request_trace(Heartbeat& heartbeat, pid_t worker) noexcept;
/// True once the worker has answered.
bool trace_answered(const Heartbeat& heartbeat) noexcept;
/// One frame per line, innermost first: "function (file)"; for libraries loaded after the fork "file+0x12".
/// Without an answer, the kernel's state of the process.
std::string describe_trace(const Heartbeat& heartbeat, pid_t worker);

/// State letter of a process from /proc; '?' when it is gone.
char process_state(pid_t pid) noexcept;
/// For how long its main thread was ready to run and had no core, since it began; 0 where the kernel does not
/// tell.
double core_wait_s(pid_t pid) noexcept;

}  // namespace assay::supervisor
