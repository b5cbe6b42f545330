// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/p2p_spec.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/error.hpp"
#include "suites/p2p/choice.hpp"

namespace assay::p2p {
namespace {

constexpr std::size_t chase_bytes = mib;  ///< 16,384 loads: some 15 ms between GPUs (an estimate)
/// Of the messages with which most pairs of nodes meet: long enough for the rate of a link to show.
constexpr std::size_t least_meeting_bytes = 64 * 1024, most_meeting_bytes = 256 * 1024;
constexpr std::size_t most_nic_bytes = 4 * mib;  ///< of a message whose bandwidth over one NIC is measured

/// As it may stand in the name of a case: "mlx5_0:1" is "mlx5_0.1".
std::string in_name(std::string nic) {
  for (char& c : nic) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-') c = '.';
  }
  return nic;
}

bool required_size(Level level, Mode mode, std::size_t bytes) {
  if (level == Level::smoke) return mode == Mode::uni && bytes == mib;
  return mode == Mode::uni && bytes == 4 * mib;
}

/// The isolated series of a measurement: none in smoke, of the latency in quick, of all from standard up.
bool has_isolated(Level level, Mode mode) {
  return level == Level::quick ? mode == Mode::latency : level >= Level::standard;
}

}  // namespace

const char* to_string(Mode mode) noexcept {
  switch (mode) {
    case Mode::latency: return "latency";
    case Mode::uni: return "uni";
    case Mode::bi: return "bi";
    case Mode::rate: return "rate";
    case Mode::put: return "put";
    case Mode::get: return "get";
    case Mode::put_bi: return "put-bi";
    case Mode::get_bi: return "get-bi";
    case Mode::chase: return "chase";
  }
  return "";
}
const char* to_string(Scope scope) noexcept {
  return scope == Scope::node ? "node" : scope == Scope::cross ? "cross" : "loopback";
}

Mode mode_from(const std::string& text) {
  for (const Mode mode : {Mode::latency, Mode::uni, Mode::bi, Mode::rate, Mode::put, Mode::get, Mode::put_bi,
                          Mode::get_bi, Mode::chase})
    if (text == to_string(mode)) return mode;
  throw Error(ErrorKind::internal, "p2p: no mode '" + text + "'");
}

Scope scope_from(const std::string& text) {
  for (const Scope scope : {Scope::node, Scope::cross, Scope::loopback})
    if (text == to_string(scope)) return scope;
  throw Error(ErrorKind::internal, "p2p: no scope '" + text + "'");
}

std::string Spec::name() const {
  const std::string operation = mode == Mode::latency || mode == Mode::rate || mode == Mode::chase
                                    ? to_string(mode)
                                    : std::string("bandwidth-") + to_string(mode);
  return operation + "-" + std::to_string(bytes) + "-" + to_string(scope) + "-" + transport +
         (nic.empty() ? "" : "-" + in_name(nic)) + (far.empty() ? "" : "-" + in_name(far)) +
         (isolated ? "-isolated" : "");
}

Spec spec_of(const Case& c) {
  Spec spec;
  spec.mode = mode_from(c.parameters.at("mode"));
  spec.scope = scope_from(c.parameters.at("scope"));
  spec.transport = c.parameters.at("transport");
  spec.bytes = c.parameters.at("bytes");
  spec.isolated = c.parameters.at("series") == "isolated";
  spec.nic = c.parameters.value("nic", "");
  spec.far = c.parameters.value("far_nic", "");
  spec.meetings = c.parameters.value("meetings", false);
  return spec;
}

bool moves_little(const Spec& spec) {
  return spec.mode == Mode::latency || spec.mode == Mode::rate || spec.mode == Mode::chase;
}

Rail rail_of(const Spec& spec, const std::vector<Rail>& all) {
  const auto named = [&](const std::string& nic) -> const Rail& {
    const auto at = std::find_if(all.begin(), all.end(), [&](const Rail& rail) { return rail.nic == nic; });
    if (at == all.end()) throw Error(ErrorKind::internal, "p2p: no NIC " + nic + " on every node");
    return *at;
  };
  return spec.far.empty() ? named(spec.nic) : across(named(spec.nic), named(spec.far));
}

Rail rail_of(const Spec& spec, const Topology& topology) { return rail_of(spec, rails(topology)); }

namespace {

/// Sizes, modes and scopes that are wanted, as measurements.
class SpecList {
 public:
  SpecList(const Config& config, const Topology& topology)
      : config_(config),
        topology_(topology),
        modes_(config.options.list("p2p.modes")),
        scopes_(config.options.list("p2p.scopes")),
        transports_(wanted_transports(config, topology)),
        sizes_(wanted_sizes(config, topology)),
        nic_bytes_(sizes_.front()) {
    for (const std::size_t bytes : sizes_)
      if (bytes <= most_nic_bytes) nic_bytes_ = bytes;
  }

  /// Over what the transport chooses, required ones first.
  void add_two_sided() {
    if (wants(Mode::latency)) add(Mode::latency, 8, true);
    if (wants(Mode::rate) && (config_.level > Level::smoke || config_.options.has("p2p.modes")))
      add(Mode::rate, 8, false);
    for (const Mode mode : {Mode::uni, Mode::bi}) {
      if (!wants(mode) ||
          (mode == Mode::bi && config_.level == Level::smoke && !config_.options.has("p2p.sizes")))
        continue;
      for (const std::size_t bytes : sizes_) add(mode, bytes, required_size(config_.level, mode, bytes));
    }
    choose_meetings();
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Spec& a, const Spec& b) { return a.required > b.required; });
  }

  void add_one_sided() {
    const bool one_sided = config_.level >= Level::standard || config_.options.has("p2p.modes");
    for (const Mode mode : {Mode::put, Mode::get})
      for (const Scope scope : {Scope::node, Scope::cross})
        if (one_sided && wants(mode) && in_scope(scope) &&
            std::find(transports_.begin(), transports_.end(), "ucx") != transports_.end())
          all_.push_back({mode, scope, "ucx", nic_bytes_, false, false});
    for (const std::string& transport : transports_)
      for (const Mode mode : {Mode::put, Mode::get, Mode::put_bi, Mode::get_bi})
        if (copies_between_peers(transport) && wants(mode) && in_scope(Scope::node) &&
            (one_sided || mode == Mode::put || mode == Mode::get))
          all_.push_back({mode, Scope::node, transport, sizes_.back(), false, false});
    if (std::ranges::count(transports_, "cuda-sm") > 0 && wants(Mode::chase) && in_scope(Scope::node) &&
        one_sided)
      all_.push_back({Mode::chase, Scope::node, "cuda-sm", chase_bytes, false, false});
  }

  void add_nics() {
    const auto nics = wanted_nics(config_, topology_);
    for (const std::string& nic : nics) {
      add_nic(nic, Scope::loopback, {Mode::latency, Mode::uni});
      add_nic(nic, Scope::cross, {Mode::latency, Mode::rate, Mode::uni, Mode::bi, Mode::put, Mode::get});
    }
    if (config_.options.flag("p2p.cross-rails")) add_cross_rails(nics);
  }

  std::vector<Spec> take() { return std::move(all_); }

 private:
  bool in_scope(Scope scope) const {
    return std::find(scopes_.begin(), scopes_.end(), to_string(scope)) != scopes_.end();
  }
  bool wants(Mode mode) const {
    return std::find(modes_.begin(), modes_.end(), to_string(mode)) != modes_.end();
  }

  void add(Mode mode, std::size_t bytes, bool required) {
    for (const Scope scope : {Scope::node, Scope::cross}) {
      if (!in_scope(scope)) continue;
      for (const std::string& transport : transports_) {
        if (copies_between_peers(transport)) continue;
        all_.push_back({mode, scope, transport, bytes, false, required && transport == transports_.front()});
        if (has_isolated(config_.level, mode)) all_.push_back({mode, scope, transport, bytes, true, false});
      }
    }
  }

  /// A pair of nodes is found only where the two meet: in the shortest batches that show its rate they take
  /// the least time.
  void choose_meetings() {
    const bool few = topology_.nodes.size() <= max_full_nodes && !config_.options.has("p2p.links");
    if (config_.level < Level::standard || few || config_.options.integer("p2p.rounds") > 0) return;
    Spec* best = nullptr;
    for (Spec& spec : all_)
      if (spec.mode == Mode::uni && spec.scope == Scope::cross && spec.transport == "mpi" && !spec.isolated &&
          spec.bytes >= least_meeting_bytes && spec.bytes <= most_meeting_bytes &&
          (best == nullptr || spec.bytes > best->bytes))
        best = &spec;
    if (best != nullptr) best->meetings = best->required = true;
  }

  std::size_t bytes_over_nic(Mode mode) const {
    return mode == Mode::latency || mode == Mode::rate ? 8 : nic_bytes_;
  }

  void add_nic(const std::string& nic, Scope scope, std::initializer_list<Mode> modes) {
    if (!in_scope(scope)) return;
    for (const Mode mode : modes)
      if (wants(mode)) all_.push_back({mode, scope, "ucx", bytes_over_nic(mode), false, false, nic});
  }

  /// Each rail with the next one is a sample of all; an InfiniBand port has nothing to say to an Ethernet
  /// one.
  void add_cross_rails(const std::vector<std::string>& nics) {
    if (nics.size() < 2)
      throw_usage(
          "--p2p.cross-rails: needs two NICs that all nodes have up, and --p2p.nics below level standard");
    const auto transports_of = [&](const std::string& nic) {
      return rail_of({.nic = nic}, topology_).transports;
    };
    for (std::size_t k = 0; k < nics.size() && in_scope(Scope::cross); ++k) {
      const std::string& far = nics[(k + 1) % nics.size()];
      if (transports_of(nics[k]) != transports_of(far)) continue;
      for (const Mode mode : {Mode::latency, Mode::uni})
        if (wants(mode))
          all_.push_back({mode, Scope::cross, "ucx", bytes_over_nic(mode), false, false, nics[k], far});
    }
  }

  const Config& config_;
  const Topology& topology_;
  std::vector<std::string> modes_, scopes_, transports_;
  std::vector<std::size_t> sizes_;
  std::size_t nic_bytes_;
  std::vector<Spec> all_;
};

}  // namespace

std::vector<Spec> specs(const Config& config, const Topology& topology) {
  SpecList list(config, topology);
  list.add_two_sided();
  list.add_one_sided();
  list.add_nics();
  return list.take();
}

}  // namespace assay::p2p
