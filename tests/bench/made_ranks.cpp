// SPDX-License-Identifier: Apache-2.0
#include "made_ranks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "run/controller.hpp"
#include "supervisor/heartbeat.hpp"
#include "supervisor/loops.hpp"
#include "supervisor/supervisor.hpp"

namespace assay::bench {

using namespace supervisor;

namespace {

constexpr double case_s = 0.005, slower = 100;
/// How often a rank is served that looks for the collector, or waits for the others of its node to leave.
constexpr double look_s = 0.2;
/// Ranks of one process that are on their way to the collector at the same time. Each answers within a second
/// or it is sent away, and all of them share two cores.
constexpr int most_on_the_way = 16 * local_ranks;
/// More reports than these in a second take all of two cores. Real supervisors report twice a second each.
constexpr double most_reports_per_s = 32768;
/// Between two rounds, for more to arrive: of a process with many ranks.
constexpr int pause_us = 5000, few_ranks = 1000;

/// Healthy devices differ by 0.4 %, samples of one by 1 %.
double wobble(std::uint64_t a, std::uint64_t b, double size) {
  return 1 + size * (static_cast<double>(mix64(a, b) >> 11) * 0x1p-53 - 0.5);
}

/// The other ends of a rank's links: those of the retest, or one for each row that the case has planned.
std::vector<int> partners(const Job& job, const Case& c, int rank) {
  const int device = job.entities->device_of_rank(rank);
  std::vector<int> out;
  if (c.retest) {
    for (const auto& round : c.retest->rounds)
      for (const auto& [a, b] : round)
        if (a == device && std::find(out.begin(), out.end(), b) == out.end()) out.push_back(b);
    return out;
  }
  const int ranks = job.topology.size(), nodes = ranks / local_ranks;
  const bool across = c.links.starts_with("cross");
  std::set<int> steps;  // the same for all ranks
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(1, c.entities / ranks));
  for (std::uint64_t draw = 0;
       steps.size() < std::min<std::size_t>(wanted, across ? nodes - 1 : local_ranks - 1); ++draw)
    steps.insert(1 + static_cast<int>(across ? mix64(hash_text(c.links), draw) % (nodes - 1) : draw));
  for (const int step : steps)
    out.push_back(job.entities->device_of_rank(across ? (rank + step * local_ranks) % ranks
                                                      : rank / local_ranks * local_ranks +
                                                            (rank + step) % local_ranks));
  return out;
}

/// Numbers that the pairs of a case report beside their rates.
bool is_of_a_link(const results::MetricSpec& spec) {
  return spec.name == "round" || spec.name == "repetitions" || spec.name == "message_bytes" ||
         spec.name == "payload";
}

/// Counters as of a node with 10 NICs and 8 GPUs: all of them around the first case, then two of each NIC and
/// four of each GPU, which change in every case.
std::string counters_of(const Job& job, int rank, int number) {
  constexpr std::array sizes{25, 30, 2, 4};  // of a NIC and a GPU: all, and those that change
  const std::size_t kind = number == 0 ? 0 : 2;
  Json told = Json::array();
  const auto add = [&](const char* what, const std::string& name, int counters) {
    const double before = 1e3 * rank + 1234567.0 * number;
    for (int i = 0; i < counters; ++i)
      tell_counter(told, what, name, fmt::format("driver_made_{}", i), before, before + 1234567);
  };
  for (const Nic& nic : job.topology.nodes[static_cast<std::size_t>(rank / local_ranks)].nics)
    add("nic", node_name(rank / local_ranks) + "/" + nic.name, sizes[kind]);
  for (int i = 0; i < local_ranks; ++i)
    add("device", job.entities->row(job.entities->device_of_rank(rank + i)).name, sizes[kind + 1]);
  return told.dump();
}

/// As many samples of 8 GPUs and their node as a plan of `standard` keeps of them in one of 100 cases.
std::string telemetry_of(const Job& job, int rank, int number) {
  constexpr double most_samples = 4e6, cases = 100, most = 18;
  const double series = 9.0 * static_cast<double>(job.topology.nodes.size());
  const double each = std::min(most, most_samples / series / cases);
  const int samples = static_cast<int>(each * (number + 1)) - static_cast<int>(each * number);
  if (samples == 0) return "";
  std::string series_text;
  const auto list = [&](double value) {
    std::string out;
    for (int i = 0; i < samples; ++i) out += fmt::format("{}{}", i > 0 ? "," : "", value + 0.37 * i + rank);
    return "[" + out + "]";
  };
  const auto add = [&](const char* kind, const std::string& name,
                       std::initializer_list<const char*> quantities) {
    std::string values;
    for (const char* quantity : quantities)
      values += fmt::format(R"({}"{}":{})", values.empty() ? "" : ",", quantity, list(1.98e9));
    series_text += fmt::format(R"({}["{}","{}",{},{{{}}}])", series_text.empty() ? "" : ",", kind, name,
                               list(number), values);
  };
  add("node", node_name(rank / local_ranks), {"clock", "temperature", "power"});
  for (int i = 0; i < local_ranks; ++i)
    add("device", job.entities->row(job.entities->device_of_rank(rank + i)).name,
        {"sm_clock", "memory_clock", "power", "power_limit", "temperature", "memory_temperature",
         "utilisation", "memory_utilisation", "pcie_generation", "pcie_width"});
  return fmt::format(R"({{"series":[{}],"flags":[]}})", series_text);
}

std::string report_of(const Job& job, int rank, int number, const Order& order) {
  const auto index = static_cast<std::size_t>(number);
  const Case c = index < job.plan.cases.size()
                     ? job.plan.cases[index]
                     : retest_case(job.plan, retest_order_from(order.retest), job.topology, *job.entities);
  CaseRecord record;
  const int device = job.entities->device_of_rank(rank);
  const bool links = c.entity_kind == "link";
  if (links)
    for (const int other : partners(job, c, rank)) record.add_link(device, other);
  else if (!c.retest || c.retest->devices.empty() || std::ranges::count(c.retest->devices, device) > 0)
    record.add_row(device);
  const auto suite =
      std::find_if(job.suites.begin(), job.suites.end(), [&](const auto& s) { return s->name() == c.suite; });
  const double slow = rank / local_ranks == job.upset.slow ? slower : 1;
  for (const results::MetricSpec& spec : (*suite)->metrics()) {
    const bool of_link = links && is_of_a_link(spec);
    if (spec.operation != c.operation || (spec.role != results::Role::metric && !of_link)) continue;
    record.declare(spec);
    const std::uint64_t seed = hash_text(c.path() + spec.name);
    const double typical = spec.unit == "count" ? 0 : spec.typical > 0 ? spec.typical : 1e11;  // no errors
    const double rate =
        typical * wobble(hash_text(c.base_path()), static_cast<std::uint64_t>(rank), 0.004) / slow;
    for (std::size_t r = 0; r < record.rows_.size(); ++r) {
      auto& values = record.rows_[r].values[spec.name];
      const std::uint64_t first = (static_cast<std::uint64_t>(rank) << 8 | r) * job.samples;
      for (std::size_t i = 0; i < (spec.per_sample ? job.samples : 1); ++i)
        values.push_back(of_link ? static_cast<double>(r) : rate * wobble(seed, first + i, 0.01));
    }
  }
  for (CaseRecord::Row& row : record.rows_)
    for (std::size_t i = 0; i < job.samples; ++i) {
      row.t.push_back(1.0 + 1e-3 * static_cast<double>(i) + 1e-7 * rank);
      row.block.push_back(static_cast<int>(i / 10));
    }
  for (const std::string& checker : c.checkers) record.selftest({checker, 1, 1, 1, 1, device});
  record.wall_s_ = 0.1;
  const bool leads = rank % local_ranks == 0;
  return to_text(CaseReport{record.serialize(),
                            leads ? counters_of(job, rank, number) : "",
                            leads ? telemetry_of(job, rank, number) : "",
                            {}});
}

}  // namespace

MadeRanks::MadeRanks(const Job& job, int first, int count, int came_line)
    : job_(job),
      first_(first),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      ranks_(static_cast<std::size_t>(count)),
      report_every_s_(std::max(status_every_s, job.topology.size() / most_reports_per_s)),
      wake_at_s_(ranks_.size(), HUGE_VAL),
      events_(ranks_.size() + 1),
      came_line_(came_line) {
  if (epoll_ < 0) throw Error(ErrorKind::resource, "the sockets of made ranks cannot be watched");
}

MadeRanks::~MadeRanks() { ::close(epoll_); }

void MadeRanks::lead(int link, const std::string& start, int leaves, int all_came) {
  worker_ = Stream(link), start_ = start, leaves_ = leaves, all_came_ = all_came;
  epoll_event event{};
  event.events = EPOLLIN, event.data.u32 = 0;
  for (const int fd : {link, all_came}) epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
}

/// The other processes have closed their ends of the pipe: as if all ranks had left MPI_Init.
void MadeRanks::start_when_all_came() {
  char byte = 0;
  if (all_came_ < 0 || ::read(all_came_, &byte, 1) != 0) return;
  ::close(std::exchange(all_came_, -1));
  in_parts({MessageType::start, 0, 0, std::exchange(start_, "")},
           [this](const Message& part) { worker_.queue(part); });
}

void MadeRanks::begin_ranks() {
  const int on_the_way = begun_ - came_;
  const int more = std::clamp(most_on_the_way - on_the_way, 0, size() - begun_) / local_ranks * local_ranks;
  for (int i = 0; i < more; ++i, ++begun_) {
    const int rank = first_ + begun_;
    wake_at_s_[static_cast<std::size_t>(begun_)] = 0;
    if (rank == 0) {
      ++came_;
      continue;
    }
    of(rank).route = std::make_unique<Route>(
        "", Place{rank, job_.topology.size(), local_ranks, node_name(rank / local_ranks)});
    of(rank).status_at_s = now_s() + report_every_s_ * begun_ / size();
  }
}

void MadeRanks::run() {
  while (begun_ < size() || std::ranges::any_of(wake_at_s_, [](double at) { return std::isfinite(at); })) {
    begin_ranks();
    wait();
    const double now = now_s();
    for (int rank = first_; rank < first_ + begun_; ++rank) {
      double& at = wake_at_s_[static_cast<std::size_t>(rank - first_)];
      if (at > now) continue;
      serve(rank, now);
      watch(rank);
      at = next_time(rank, now);
    }
    if (came_ == size() && came_line_ >= 0) ::close(std::exchange(came_line_, -1));
  }
}

/// Until a socket is ready or the next time has come. Ranks whose sockets are ready are to be served now.
void MadeRanks::wait() {
  constexpr double most_ms = 100;
  if (size() > few_ranks) usleep(pause_us);
  const double in_ms = 1e3 * (*std::ranges::min_element(wake_at_s_) - now_s());
  const int n = epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()),
                           static_cast<int>(std::ceil(std::clamp(in_ms, 0.0, most_ms))));
  for (int i = 0; i < n; ++i) {
    double& at = wake_at_s_[events_[static_cast<std::size_t>(i)].data.u32];
    if (std::isfinite(at)) at = 0;
  }
}

/// Tells the kernel which sockets the rank waits for now.
void MadeRanks::watch(int rank) {
  Rank& r = of(rank);
  std::vector<pollfd> wanted;
  if (r.route && !r.stopped) r.route->watch(wanted);
  const auto same = [](const pollfd& a, const pollfd& b) { return a.fd == b.fd && a.events == b.events; };
  if (std::ranges::equal(wanted, r.watched, same)) return;
  const auto among = [](const std::vector<pollfd>& list, const pollfd& one) {
    return std::ranges::any_of(list, [&](const pollfd& p) { return p.fd == one.fd; });
  };
  epoll_event event{};
  event.data.u32 = static_cast<std::uint32_t>(rank - first_);
  for (const pollfd& p : r.watched)  // one that is closed is no longer there
    if (!among(wanted, p)) epoll_ctl(epoll_, EPOLL_CTL_DEL, p.fd, &event);
  for (const pollfd& p : wanted) {
    event.events = static_cast<std::uint32_t>(p.events);  // both have the same bits
    if (epoll_ctl(epoll_, EPOLL_CTL_MOD, p.fd, &event) != 0) epoll_ctl(epoll_, EPOLL_CTL_ADD, p.fd, &event);
  }
  r.watched = std::move(wanted);
}

double MadeRanks::next_time(int rank, double now) const {
  const Rank& r = ranks_[static_cast<std::size_t>(rank - first_)];
  const double due_s = r.due_s > 0 ? r.due_s : HUGE_VAL;
  if (rank == 0)
    return !worker_.open() ? HUGE_VAL : worker_.wants_out() ? now : std::min(due_s, now + look_s);
  if (!r.route || r.stopped) return HUGE_VAL;
  if (r.exit_at_s > 0 || !r.route->joined()) return now + look_s;
  return std::min(due_s, r.status_at_s);
}

void MadeRanks::serve(int rank, double now) {
  Rank& r = of(rank);
  if (rank == 0) return serve_worker(now);
  if (!r.route || r.stopped) return;
  r.route->serve(job_.address, now, [&](const Message& m) { take(rank, m, now); });
  if (r.killed) r.route.reset();
  if (!r.route) return;
  if (r.exit_at_s > 0 || r.route->lost()) {
    if (r.route->relays_nothing() || r.route->lost() || now - r.exit_at_s > farewell_s) r.route.reset();
    return;
  }
  if (r.route->joined() && !std::exchange(r.ready, true)) {
    ++came_;
    r.route->send({MessageType::ready, rank, 0, ""});
  }
  hand_in(rank, now);
  if (now < r.status_at_s) return;
  r.status_at_s = now + report_every_s_;
  Snapshot at;
  at.phase = r.case_index < 0 ? Phase::waiting : Phase::running;
  at.case_index = r.case_index, at.process_state = 'R';
  r.route->send({MessageType::status, rank, 0, to_text(at)});
}

void MadeRanks::take(int rank, const Message& m, double now) {
  Rank& r = of(rank);
  if (m.type == MessageType::exit) {
    r.exit_at_s = now;
  } else if (m.type == MessageType::kill) {
    r.due_s = 0, r.case_index = -1;
    r.route->send({MessageType::done, rank, 3, ""});
  } else if (m.type == MessageType::trace_request) {
    r.route->send({MessageType::trace, rank, 0, "made"});
  } else if (m.type == MessageType::step && m.number < 0) {
    r.route->send({MessageType::bye, rank, 0, ""});
    r.route->send({MessageType::done, rank, 0, ""});
  } else if (m.type == MessageType::step) {
    step(rank, m, now);
  }
}

void MadeRanks::step(int rank, const Message& m, double now) {
  Rank& r = of(rank);
  const int node = rank / local_ranks;
  if (m.number > 1 && node == job_.upset.silent) r.stopped = true;  // after a self-test and a case of rates
  if (m.number > 1 && node == job_.upset.killed && !r.route->relays_nothing()) {
    r.killed = true;
    return;
  }
  r.case_index = m.number;
  r.order = order_from(m.text);
  r.due_s = now + (node == job_.upset.slow ? slower : 1) * case_s;
}

void MadeRanks::hand_in(int rank, double now) {
  Rank& r = of(rank);
  if (r.due_s == 0 || now < r.due_s) return;
  r.due_s = 0;
  const std::string text = report_of(job_, rank, r.case_index, r.order);
  const Message record{MessageType::record, rank, r.case_index, text};
  if (rank == 0)
    worker_.queue(record);
  else
    r.route->send(record);
}

void MadeRanks::serve_worker(double now) {
  if (!worker_.open()) return;
  start_when_all_came();
  const bool alive = worker_.pump_out() && worker_.pump_in();
  while (const auto m = worker_.take()) {
    if (m->type == MessageType::started) {
      if (m->number >= 0) throw Error(ErrorKind::internal, m->text);
      worker_.queue({MessageType::ready, 0, 0, to_text(ReadyFacts{now, 0, "made"})});
    } else if (m->type == MessageType::step && m->number >= 0) {
      step(0, *m, now);
    } else if (m->type == MessageType::step) {
      worker_.queue({MessageType::bye, 0, 0, ""});
      worker_.pump_out();
      ::close(std::exchange(leaves_, -1));
    }
  }
  hand_in(0, now);
  worker_.pump_out();
  if (!alive) worker_.close();
}

}  // namespace assay::bench
