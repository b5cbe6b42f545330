// SPDX-License-Identifier: Apache-2.0
#include "supervisor/worker_link.hpp"

#include <utility>

#include "base/error.hpp"
#include "supervisor/rendezvous.hpp"

namespace assay::supervisor {

void WorkerLink::send(MessageType type, std::int32_t number, std::string text) {
  in_parts({type, -1, number, std::move(text)}, [this](const Message& message) {
    if (!stream_.send_all(message)) throw Error(ErrorKind::internal, "this rank's supervisor is gone");
    heartbeat_.calls.fetch_add(1, std::memory_order_relaxed);  // a long text is progress, not a hang
  });
}

Message WorkerLink::wait(MessageType type) {
  auto message = stream_.wait();
  if (!message) throw Error(ErrorKind::internal, "this rank's supervisor is gone");
  if (message->type != type)
    throw Error(ErrorKind::internal, "this rank's supervisor sent an unexpected message");
  return std::move(*message);
}

std::string WorkerLink::collector_address() {
  is_collectors_ = true;
  return wait(MessageType::address).text;
}

bool WorkerLink::finds_collector(const std::string& folder) const {
  // In this order: the file is removed when all supervisors are connected, and they know the address by then.
  return is_collectors_ || RendezvousFile::read(folder, job_name()) || heartbeat_.address_known;
}

void WorkerLink::connect(const std::string& address) { send(MessageType::connect, 0, address); }

void WorkerLink::start(const std::string& text) {
  send(MessageType::start, 0, text);
  const Message reply = wait(MessageType::started);
  if (reply.number >= 0) throw Error(static_cast<ErrorKind>(reply.number), reply.text);
}

void WorkerLink::ready(const std::string& text) {
  enter(Phase::waiting);
  send(MessageType::ready, 0, text);
}

int WorkerLink::next_case() {
  Message step = wait(MessageType::step);
  const int number = step.number;
  step_text_ = std::move(step.text);
  if (number >= 0) {
    heartbeat_.iteration.store(0, std::memory_order_relaxed);
    heartbeat_.case_index.store(number, std::memory_order_relaxed);
    enter(Phase::running);
  }
  return number;
}

void WorkerLink::record(int case_index, std::string text) {
  enter(Phase::waiting);
  send(MessageType::record, case_index, std::move(text));
}

void WorkerLink::rest() {
  enter(Phase::waiting);
  send(MessageType::idle, 0, "");
  while (wait(MessageType::step).number != no_more_cases) {
  }
}

void WorkerLink::bye(int code) {
  enter(Phase::ending);
  send(MessageType::bye, code, "");
}

}  // namespace assay::supervisor
