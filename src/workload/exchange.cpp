// SPDX-License-Identifier: Apache-2.0
#include "workload/exchange.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "kernels/chase.hpp"
#include "kernels/payload.hpp"

namespace assay::workload {
namespace {

/// What a node of a chain holds: the number of the next one, and that with the key.
PayloadError wrong_node(const RemoteWalk& walk, std::size_t nodes, std::uint64_t key) {
  const auto order = kernels::chase_order(nodes, key);
  std::size_t place = 0;
  while (place < nodes && order.node_at(place) != walk.node) ++place;
  const std::uint64_t next = order.node_at(place + 1 < nodes ? place + 1 : 0);
  const std::uint64_t expected[2] = {next, next ^ key};
  const std::size_t word = walk.words[0] != expected[0] ? 0 : 1;
  PayloadError bad;
  bad.count = 1;
  bad.byte_index = walk.node * kernels::chase_node_bytes + 8 * word;
  bad.expected = expected[word];
  bad.actual = bad.reread = walk.words[word];
  return bad;
}

}  // namespace

std::optional<PayloadError> check_payload(const PayloadBuffer& buffer, kernels::PayloadKey key,
                                          std::size_t at, std::size_t bytes, int source,
                                          std::uint64_t iteration) {
  const double begin = now_s();
  const std::byte* data = buffer.data() + at;
  const auto errors = buffer.check(key, data, bytes);
  if (errors.count == 0) return std::nullopt;
  PayloadError bad{source,        iteration, errors.count, errors.first_index * 8, errors.expected,
                   errors.actual, 0,         begin};
  bad.reread = buffer.read_again(data + bad.byte_index, bytes - bad.byte_index);
  return bad;
}

Exchange::Exchange(Communicator& comm, const PayloadBuffer& arena, std::uint64_t key, const Shape& shape,
                   TimedFault fault, RemoteMemory* remote)
    : comm_(comm),
      arena_(arena),
      key_(key),
      shape_(shape),
      fault_(std::move(fault)),
      remote_(remote),
      requests_(2 * shape.repetitions),
      batch_{shape.bytes, shape.repetitions},
      led_(batch_) {
  if (shape.slots < shape.repetitions || arena.size() < shape.arena_bytes())
    throw Error(ErrorKind::internal, "p2p: the arena is smaller than the slots of a batch");
}

/// A rank whose device failed cannot send or receive payload any more. Each tells the other how it ended, and
/// listens for that while it waits.
Series Exchange::run(int peer, bool first, const Limits& limits) {
  peer_end_ = End::unknown;
  if (!arena_.on_device()) return take_turns(peer, first, limits);
  Request word;
  comm_.irecv(&peer_end_, sizeof peer_end_, peer, end_tag, word);
  comm_.while_waiting([&] {
    if (comm_.test_all({&word, 1}) && peer_failed())
      throw Error(ErrorKind::mpi, "the other end cannot go on");
  });
  Series series;
  try {
    if (!failure_) series = take_turns(peer, first, limits);
  } catch (...) {
    comm_.abandon(requests_);
    if (!peer_failed()) keep_failure();
  }
  comm_.while_waiting({});
  comm_.send(&end_, sizeof end_, peer, end_tag);
  comm_.wait_all({&word, 1});
  if (failure_) std::rethrow_exception(failure_);
  return peer_failed() ? Series{} : series;
}

void Exchange::keep_failure() noexcept {
  failure_ = std::current_exception();
  end_ = End::gave_up;
  try {
    std::rethrow_exception(failure_);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::device) end_ = End::device_failed;
  } catch (...) {
  }
}

Series Exchange::take_turns(int peer, bool first, const Limits& limits) {
  Series series;
  sent_ = 0;
  const double end_s = now_s() + limits.seconds;
  for (std::size_t block = 0; block < limits.blocks; ++block)
    for (const bool mine : {first, !first}) {
      if (mine)
        lead(peer, limits, static_cast<std::int32_t>(block), end_s, series);
      else
        follow(peer);
    }
  series.batch = led_;
  series.payload = sent_;
  return series;
}

void Exchange::lead(int peer, const Limits& limits, std::int32_t block, double end_s, Series& series) {
  const double begin = now_s();
  const double share_s = limits.seconds / (2.0 * static_cast<double>(limits.blocks));
  const auto target = (limits.samples + limits.blocks - 1) / limits.blocks;
  double start = 0;
  if (block == 0 && begin < limits.deadline_s) {
    const Times before = times_;
    climb(peer, limits, series);
    times_ = before;
    times_.warmup_s += now_s() - begin;
  }
  double last_s = 0;
  for (std::size_t n = 0; n < target; ++n) {
    while (limits.interval_s > 0 && now_s() < begin + static_cast<double>(n) * limits.interval_s)
      sched_yield();
    const double now = now_s();
    const bool late = now - begin + last_s / 2 > share_s || now > end_s;
    if ((late && !series.batch_s.empty()) || now > limits.deadline_s) break;
    series.batch_s.push_back(lead_batch(peer, Control::sample, start));
    series.start_s.push_back(start);
    series.block.push_back(block);
    last_s = now_s() - now;
  }
  const Control stop;
  comm_.send(&stop, sizeof stop, peer, control_tag);
}

/// The last step is the batch that is measured, and warms up for it. Of the time of a direction each of at
/// least two samples and the step before them may take a third. A link on which even the first step takes all
/// of it has that as its sample.
void Exchange::climb(int peer, const Limits& limits, Series& series) {
  const double direction_s = limits.seconds / 2;
  const std::uint64_t most = limits.repetitions > 0 ? limits.repetitions : shape_.repetitions;
  Sizing sizing({shape_.bytes, std::min(most, shape_.repetitions)}, direction_s / 3, direction_s / 2);
  double start = 0, last_s = 0;
  while (!sizing.done() && now_s() < limits.deadline_s) {
    led_ = sizing.next();
    last_s = lead_batch(peer, Control::warm_up, start);
    sizing.took(last_s);
  }
  const bool fitted = led_ == sizing.fitted();
  led_ = sizing.fitted();
  if (!fitted || last_s < direction_s) return;
  series.batch_s.push_back(last_s);
  series.start_s.push_back(start);
  series.block.push_back(0);
}

void Exchange::follow(int peer) {
  for (;;) {
    Control control;
    comm_.recv(&control, sizeof control, peer, control_tag);
    if (control.go == Control::stop) return;
    // Numbers never repeat within a pair, whichever end leads: an old message left in a slot must not look
    // like the new one.
    next_iteration_ = std::max(next_iteration_, control.iteration + control.repetitions);
    batch_ = {control.bytes, control.repetitions};
    follow_batch(peer, control);
  }
}

double Exchange::lead_batch(int peer, Control::Go go, double& start_s) {
  batch_ = led_;
  const Control control{go, next_iteration_, batch_.bytes, batch_.repetitions};
  next_iteration_ += batch_.repetitions;
  comm_.send(&control, sizeof control, peer, control_tag);
  if (shape_.one_sided()) return lead_one_sided(peer, control, start_s);
  fill(peer, control.iteration);
  if (shape_.both_ways() && !reaches_both_ways()) post_receives(peer, control.iteration);
  char byte = 0;
  comm_.recv(&byte, 1, peer, ready_tag);
  if (reaches_both_ways()) comm_.send(&byte, 1, peer, ready_tag);  // what lies here may be read

  const double t0 = now_s();
  if (shape_.mode == Mode::latency) {
    for (std::uint64_t i = 0; i < batch_.repetitions; ++i) {
      comm_.send(send_slot(control.iteration + i), batch_.bytes, peer, payload_tag);
      comm_.recv(recv_slot(control.iteration + i), batch_.bytes, peer, payload_tag);
    }
  } else {
    if (reaches_both_ways()) {
      reach(peer, control.iteration);
    } else {
      start_sends(peer, control.iteration);
      comm_.wait_all(in_use());
    }
    if (shape_.both_ways()) comm_.send(&byte, 1, peer, ack_tag);
    comm_.recv(&byte, 1, peer, ack_tag);
  }
  apply_injected_delay(t0, control.go);
  const double t1 = now_s();
  start_s = t0;
  times_.timed_s += t1 - t0;
  if (!shape_.one_way()) verify(peer, control.iteration);
  return t1 - t0;
}

/// A follower that is slow is so before it lets the leader stop its clock.
void Exchange::follow_batch(int peer, const Control& control) {
  const std::uint64_t iteration = control.iteration;
  if (shape_.one_sided()) return follow_one_sided(peer, control);
  char byte = 0;
  if (!shape_.one_way()) fill(peer, iteration);
  if (shape_.mode != Mode::latency && !reaches_both_ways()) post_receives(peer, iteration);
  const double t0 = now_s();
  comm_.send(&byte, 1, peer, ready_tag);
  if (reaches_both_ways()) comm_.recv(&byte, 1, peer, ready_tag);
  if (shape_.mode == Mode::latency) {
    for (std::uint64_t i = 0; i < batch_.repetitions; ++i) {
      comm_.recv(recv_slot(iteration + i), batch_.bytes, peer, payload_tag);
      if (i + 1 == batch_.repetitions) apply_injected_delay(t0, control.go);
      comm_.send(send_slot(iteration + i), batch_.bytes, peer, payload_tag);
    }
  } else {
    if (reaches_both_ways()) {
      reach(peer, iteration);
    } else {
      if (shape_.both_ways()) start_sends(peer, iteration);
      comm_.wait_all(in_use());
    }
    apply_injected_delay(t0, control.go);
    comm_.send(&byte, 1, peer, ack_tag);
    if (shape_.both_ways()) comm_.recv(&byte, 1, peer, ack_tag);
  }
  times_.timed_s += now_s() - t0;
  verify(peer, iteration);
}

/// Both have the same slots at the same offsets. What is written is checked where it arrived, once the leader
/// says that it has.
double Exchange::lead_one_sided(int peer, const Control& control, double& start_s) {
  const bool writes = shape_.mode == Mode::put;
  char byte = 0;
  if (writes) fill(peer, control.iteration);
  comm_.recv(&byte, 1, peer, ready_tag);
  const double t0 = now_s();
  double walked_s = 0;
  if (shape_.mode == Mode::chase)
    walked_s = walk(peer, control.iteration);
  else if (remote_ == nullptr)
    move_by_messages(peer, control.iteration, writes, true);
  else
    reach(peer, control.iteration);
  const double end = now_s();
  apply_injected_delay(t0, control.go);
  const double t1 = now_s();
  start_s = t0;
  times_.timed_s += t1 - t0;
  if (shape_.mode == Mode::get) verify(peer, control.iteration);
  comm_.send(&byte, 1, peer, ack_tag);
  return shape_.mode == Mode::chase ? walked_s + (t1 - end) : t1 - t0;
}

double Exchange::walk(int peer, std::uint64_t iteration) {
  double seconds = 0;
  for (std::uint64_t i = iteration; i < iteration + batch_.repetitions; ++i) {
    const std::uint64_t key = kernels::payload_key(key_, peer, comm_.rank(), i).value;
    const auto offset = static_cast<std::size_t>(send_slot(i) - arena_.data());
    const RemoteWalk done = remote_->walk_chain(peer, offset, batch_.bytes, key);
    seconds += done.seconds;
    if (done.intact && done.node == 0) continue;  // once around
    wrong_.push_back(wrong_node(done, batch_.bytes / kernels::chase_node_bytes, key));
    wrong_.back().source = peer;
    wrong_.back().iteration = i;
    wrong_.back().t = now_s();
  }
  return seconds;
}

void Exchange::make_chains(int peer, std::uint64_t iteration) {
  for (std::uint64_t i = iteration; i < iteration + batch_.repetitions; ++i)
    remote_->make_chain(static_cast<std::size_t>(send_slot(i) - arena_.data()), batch_.bytes,
                        kernels::payload_key(key_, comm_.rank(), peer, i).value);
}

void Exchange::reach(int peer, std::uint64_t iteration) {
  for (std::uint64_t i = 0; i < batch_.repetitions; ++i) {
    std::byte *from = send_slot(iteration + i), *to = recv_slot(iteration + i);
    const auto offset = [&](const std::byte* slot) { return static_cast<std::size_t>(slot - arena_.data()); };
    if (shape_.mode == Mode::put || shape_.mode == Mode::put_bi)
      remote_->put(from, batch_.bytes, peer, offset(to));
    else
      remote_->get(to, batch_.bytes, peer, offset(from));
  }
  remote_->complete(peer);
}

/// The leader's clock stops when all has arrived, wherever that is.
void Exchange::move_by_messages(int peer, std::uint64_t iteration, bool sends, bool leads) {
  char byte = 0;
  if (sends)
    start_sends(peer, iteration);
  else
    post_receives(peer, iteration);
  comm_.wait_all(in_use());
  if (sends && leads) comm_.recv(&byte, 1, peer, ack_tag);
  if (!sends && !leads) comm_.send(&byte, 1, peer, ack_tag);
}

void Exchange::follow_one_sided(int peer, const Control& control) {
  const bool written = shape_.mode == Mode::put;
  char byte = 0;
  if (shape_.mode == Mode::chase)
    make_chains(peer, control.iteration);
  else if (!written)
    fill(peer, control.iteration);
  comm_.send(&byte, 1, peer, ready_tag);
  if (remote_ == nullptr) move_by_messages(peer, control.iteration, !written, false);
  comm_.recv(&byte, 1, peer, ack_tag);
  if (written) verify(peer, control.iteration);
}

void Exchange::apply_injected_delay(double begin_s, std::uint64_t go) const {
  if (fault_) fault_(begin_s, batch_.repetitions, go == Control::warm_up);
}

void Exchange::post_receives(int peer, std::uint64_t iteration) {
  for (std::uint64_t i = 0; i < batch_.repetitions; ++i)
    comm_.irecv(recv_slot(iteration + i), batch_.bytes, peer, payload_tag, requests_[i]);
}

void Exchange::start_sends(int peer, std::uint64_t iteration) {
  for (std::uint64_t i = 0; i < batch_.repetitions; ++i)
    comm_.isend(send_slot(iteration + i), batch_.bytes, peer, payload_tag, requests_[batch_.repetitions + i]);
}

void Exchange::fill(int peer, std::uint64_t iteration) {
  const double begin = now_s();
  sent_ += static_cast<double>(batch_.repetitions) * static_cast<double>(batch_.bytes);
  for (std::uint64_t i = 0; i < batch_.repetitions; ++i) {
    const auto key = kernels::payload_key(key_, comm_.rank(), peer, iteration + i);
    arena_.fill(key, send_slot(iteration + i), batch_.bytes);
  }
  arena_.settle();
  times_.verify_s += now_s() - begin;
}

void Exchange::verify(int peer, std::uint64_t iteration) {
  const double begin = now_s();
  for (std::uint64_t i = 0; i < batch_.repetitions; ++i) {
    const auto key = kernels::payload_key(key_, peer, comm_.rank(), iteration + i);
    const auto at = static_cast<std::size_t>(recv_slot(iteration + i) - arena_.data());
    if (const auto bad = check_payload(arena_, key, at, batch_.bytes, peer, iteration + i))
      wrong_.push_back(*bad);
  }
  times_.verify_s += now_s() - begin;
}

std::span<Request> Exchange::in_use() noexcept { return std::span(requests_).first(2 * batch_.repetitions); }

std::byte* Exchange::send_slot(std::uint64_t iteration) noexcept {
  return arena_.data() + iteration % shape_.slots * shape_.slot_bytes();
}

std::byte* Exchange::recv_slot(std::uint64_t iteration) noexcept {
  const std::size_t base = shape_.one_way() ? 0 : shape_.slots * shape_.slot_bytes();
  return arena_.data() + base + iteration % shape_.slots * shape_.slot_bytes();
}

}  // namespace assay::workload
