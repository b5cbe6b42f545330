// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/server_case.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "suite/together.hpp"
#include "suites/storage/local_file.hpp"
#include "suites/storage/refused.hpp"
#include "suites/storage/sequential.hpp"
#include "suites/storage/servers.hpp"
#include "suites/storage/storage_plan.hpp"

namespace assay::storage {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20, largest_blocks = 32;
constexpr std::size_t least_passes = 3, most_passes = 30;

/// What one client measured of one server.
struct Cell {
  std::vector<double> t, round, write, read;
  std::vector<std::int32_t> block;
  Evidence written, read_back;
};

class ServerCase {
 public:
  ServerCase(const Case& c, Context& context, const Site& site)
      : case_(c),
        context_(context),
        site_(site),
        clients_(*context.leaders),
        path_(c.parameters.at("path_index").get<std::size_t>()),
        entity_(context.entities.node(context.topology.me().node)),
        log_({site.key, site.files(), 2, 0}, entity_, context),
        together_(clients_) {}

  void run() {
    begin_case(case_, context_, entity_);
    const double begin = now_s();
    choose();
    place();
    agree_on_servers();
    if (!together_.any(false) && servers_.size() > 1) {
      make_rounds();
      prepare_transfer();
      if (!together_.any(false)) measure(now_s() - begin);
      report();
      close();
    }
    together_.rethrow();
  }

 private:
  /// What tells the servers: a tool of the file system, or that each directory is on a server of its own.
  void choose() {
    const std::string asked = context_.config.options.text("storage.servers");
    together_.guarded([&] {
      mount_ = look_at_place(site_.paths[path_]).mount;
      const std::string type = asked == "auto" ? mount_.type : asked;
      tool_ = type == "lustre" ? "lfs" : type == "beegfs" ? "beegfs-ctl" : "";
      by_paths_ = asked == "paths";
    });
  }

  void place() {
    const OptionValues& options = context_.config.options;
    const std::string name = fmt::format("{:06}", context_.world.rank());
    const bool direct = options.text("storage.page-cache") == "around";
    const std::size_t most = case_.parameters.at("most_servers").get<std::size_t>();
    const auto on_own = [&](std::size_t path, const std::string& server) {
      files_.place("", site_, path, name, direct, most, server);
    };
    together_.guarded([&] {
      if (!tool_.empty()) return files_.place(tool_, site_, path_, name, direct, most, "");
      std::set<std::string> met;
      for (std::size_t path = 0; path < site_.paths.size(); ++path) {
        if (!paths_of(context_.config)[path].shared(context_.topology.lacks)) continue;
        const Mount mount = look_at_place(site_.paths[path]).mount;
        const std::string server = by_paths_             ? site_.paths[path]
                                   : tells_server(mount) ? server_of_mount(mount)
                                                         : std::string();
        if (!by_paths_ && (mount.type != mount_.type || server.empty())) continue;
        if (met.empty() && path != path_) return;  // the case of the first one measures them all
        if (met.insert(server).second) on_own(path, server);
      }
    });
  }

  /// The names of all servers that any client has a file on, in one order.
  void agree_on_servers() {
    Json mine = Json::array();
    for (const auto& file : files_.all()) mine.push_back(file.server);
    std::set<std::string> names;
    for (const std::string& text : clients_.all_gather_text(mine.dump()))
      for (const Json& name : Json::parse(text)) names.insert(name.get<std::string>());
    servers_.assign(names.begin(), names.end());
    own_.assign(servers_.size(), nullptr);
    for (auto& file : files_.all())
      own_[static_cast<std::size_t>(std::lower_bound(servers_.begin(), servers_.end(), file.server) -
                                    servers_.begin())] = &file;
    context_.record.parameter("servers", servers_.size());
    if (servers_.size() > 1 || clients_.rank() != 0 || together_.failed()) return;
    context_.record.event(
        "storage-servers",
        fmt::format("{} ({}): {}", site_.paths[path_], mount_.type,
                    servers_.empty() ? "its servers are not known, or measured in another case"
                                     : "one server, nothing to compare it with"));
  }

  void make_rounds() {
    if (context_.retest == nullptr || context_.retest->rounds.empty()) {
      rounds_ = server_rounds(clients_.size(), static_cast<int>(servers_.size()));
      return;
    }
    std::map<int, int> client, server;
    for (int n = 0; n < clients_.size(); ++n) client[context_.entities.node(n)] = n;
    for (const auto& [row, name] : context_.retest->servers)
      for (std::size_t s = 0; s < servers_.size(); ++s)
        if (name == "server:" + without_blanks(servers_[s])) server[row] = static_cast<int>(s);
    for (const auto& links : context_.retest->rounds) {
      auto& round = rounds_.emplace_back();
      for (auto [a, b] : links) {
        if (!client.contains(a)) std::swap(a, b);
        if (client.contains(a) && server.contains(b)) round.emplace_back(client[a], server[b]);
      }
    }
  }

  void prepare_transfer() {
    double blocks = 0;
    together_.guarded([&] {
      engine_ = open_engine(context_, sequential_depth, clients_.size());
      const auto space =
          files_.space_per_file(asked_space(context_), static_cast<std::uint64_t>(clients_.size()));
      if (!files_.all().empty() && space < mib)
        throw Error(ErrorKind::resource,
                    fmt::format("{}: {}: too little space for a file of 1 MiB on each of {} "
                                "servers",
                                host_name(), site_.paths[path_], servers_.size()));
      blocks = static_cast<double>(std::min(space / mib, largest_blocks));
    });
    blocks = clients_.min(blocks);
    together_.any(false);  // no client writes before all have looked at the space
    together_.guarded([&] {
      if (files_.all().empty()) throw Error(ErrorKind::resource, host_name() + ": no file on any server");
      const auto& file = files_.all().front();
      transfer_.emplace(copy_of(file.fd), file.path, site_.file(context_.world.rank(), path_),
                        Layout{mib, static_cast<std::uint64_t>(blocks), 1}, *engine_, log_, context_);
      log_.known().words = transfer_->layout().end() / sizeof(std::uint64_t);
      direct_ = (::fcntl(file.fd.get(), F_GETFL) & O_DIRECT) != 0;
      if (!direct_) transfer_->drop_cache();
      tell_buffered();
    });
    const double passes = static_cast<double>(least_passes + 2);
    fit_together(transfer_, case_.seconds / (2 * passes * static_cast<double>(rounds_.size())), together_,
                 clients_);
    together_.guarded([&] { files_.drop_names(); });
    context_.record.parameter("direct", direct_ ? 1 : 0);
    context_.record.parameter("rounds", rounds_.size());
    if (transfer_) context_.record.parameter("chunk_bytes", transfer_->chunk_bytes());
  }

  /// The first of the files that O_DIRECT was refused for.
  void tell_buffered() {
    for (const auto& file : files_.all()) {
      if (file.refused.empty()) continue;
      return context_.record.event(
          "storage-buffered",
          fmt::format("{} ({}): O_DIRECT is refused ({}): files go through the page cache",
                      site_.paths[path_], file.server, file.refused),
          entity_);
    }
  }

  static Descriptor copy_of(const Descriptor& fd) {
    return Descriptor(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  }

  /// All rounds again and again; the first time allocates, and is not kept.
  void measure(double setup_s) {
    const double begin = now_s();
    double first_s = 0;
    for (std::size_t pass = 0;; ++pass) {
      for (std::size_t r = 0; r < rounds_.size(); ++r) {
        const int server = mine(r);
        File* file = server < 0 ? nullptr : own_[static_cast<std::size_t>(server)];
        one_round(file, r, static_cast<std::size_t>(std::max(server, 0)), pass);
        context_.count_batch();
      }
      if (pass == 0) first_s = now_s() - begin;
      const double spent = now_s() - begin;
      const bool over =
          spent + spent / static_cast<double>(pass + 1) > case_.seconds || now_s() > context_.end_s;
      if (together_.any(pass >= most_passes || (pass >= least_passes && over))) break;
    }
    compare_with_caches();
    context_.record.add_time(setup_s + first_s, now_s() - begin - first_s - verify_s_, verify_s_);
  }

  /// Of the files on all servers together.
  void compare_with_caches() {
    Evidence all;
    all.compare_with_caches(case_, static_cast<double>(files_.all().size() * transfer_->chunk_bytes()),
                            clients_);
    for (auto& [server, cell] : cells_)
      cell.written.server_cached = cell.read_back.server_cached = all.server_cached;
  }

  using File = ServerFiles::File;

  int mine(std::size_t round) const {
    for (const auto& [client, server] : rounds_[round])
      if (client == clients_.rank()) return server;
    return -1;
  }

  void one_round(File* file, std::size_t round, std::size_t server, std::size_t pass) {
    for (const bool write : {true, false}) {
      together_.guarded([&] {
        if (file == nullptr) return;
        if (write) transfer_->use_file(copy_of(file->fd));
        transfer_->prepare(write);
      });
      clients_.barrier();
      together_.guarded([&] {
        if (file != nullptr) one_sample(write, round, server, pass);
      });
    }
  }

  void one_sample(bool write, std::size_t round, std::size_t server, std::size_t pass) {
    const StorageMeter meter(write, site_.paths[path_]);
    const double begin = now_s();
    transfer_->move(write);
    if (write) transfer_->sync();
    context_.apply_injected_delay(begin, 1, pass == 0, servers_[server]);
    const double seconds = now_s() - begin, bytes = static_cast<double>(transfer_->chunk_bytes());
    if (pass == 0) return;
    Cell& cell = cells_[server];
    Evidence& evidence = write ? cell.written : cell.read_back;
    evidence.moved += meter.moved();
    evidence.asked += bytes;
    (write ? cell.write : cell.read).push_back(bytes / seconds);
    if (write) {
      cell.round.push_back(static_cast<double>(round));
      cell.t.push_back(context_.since_start(begin));
      return;
    }
    const double checked = now_s();
    const Evidence before = damage();
    const auto compared = static_cast<double>(transfer_->verify());
    evidence.resident = std::max(evidence.resident, transfer_->resident_share());
    evidence.verified += 2 * compared;  // what was compared had been written and read
    const Evidence after = damage();
    for (std::size_t kind = 0; kind < after.damage.size(); ++kind)
      evidence.damage[kind] += after.damage[kind] - before.damage[kind];
    verify_s_ += now_s() - checked;
  }

  /// Some file systems tell only then what they could not write.
  void close() {
    together_.guarded([&] { transfer_->close(); });
    for (auto& file : files_.all())
      together_.guarded([&] {
        if (const int reason = file.fd.close(); reason != 0)
          throw Refused(file.path + ": close", reason, true);
      });
  }

  Evidence damage() const {
    Evidence evidence;
    evidence.take(log_);
    return evidence;
  }

  void report() {
    bool told = false;
    for (auto& [server, cell] : cells_) {
      const std::size_t samples = std::min(cell.write.size(), cell.read.size());
      if (samples == 0) continue;
      auto& row = context_.record.add_link(entity_, servers_[server]);
      for (std::size_t s = 0; s < samples; ++s)
        row.block.push_back(static_cast<std::int32_t>(s * 3 / samples));
      for (auto* all : {&cell.t, &cell.round, &cell.write, &cell.read}) all->resize(samples);
      row.t = std::move(cell.t);
      row.values["round"] = std::move(cell.round);
      row.values[cell.written.cold() ? "write" : "write_cached"] = std::move(cell.write);
      row.values[cell.read_back.cold() ? "read" : "read_cached"] = std::move(cell.read);
      Evidence both = cell.read_back;
      both.add(cell.written);
      both.store(row);
      told = told || Evidence::tell_cached_of(cell.written, cell.read_back, servers_[server], case_, context_,
                                              entity_);
    }
  }

  const Case& case_;
  Context& context_;
  const Site& site_;
  Communicator& clients_;
  std::size_t path_;
  int entity_;
  DamageLog log_;
  Together together_;
  Mount mount_;
  std::string tool_;
  bool by_paths_ = false, direct_ = false;
  ServerFiles files_;
  std::vector<std::string> servers_;
  std::vector<ServerFiles::File*> own_;  ///< by server; null: this client has no file there
  ServerRounds rounds_;
  std::unique_ptr<Engine> engine_;
  std::optional<Transfer> transfer_;
  std::map<std::size_t, Cell> cells_;  ///< by server
  double verify_s_ = 0;
};

}  // namespace

ServerRounds server_rounds(int clients, int servers) {
  const bool alone = clients <= std::max(servers, most_alone);
  const int slots = alone ? std::max(clients, servers) : (clients + servers - 1) / servers * servers;
  ServerRounds rounds(static_cast<std::size_t>(alone ? slots : servers));
  for (std::size_t r = 0; r < rounds.size(); ++r)
    for (int client = 0; client < clients; ++client) {
      const int slot = (client + static_cast<int>(r)) % slots;
      if (!alone || slot < servers) rounds[r].emplace_back(client, slot % servers);
    }
  return rounds;
}

void run_servers(const Case& c, Context& context, const Site& site) {
  Together together(context.node);
  if (context.leaders != nullptr) together.guarded([&] { ServerCase(c, context, site).run(); });
  context.node.quiet_barrier();  // the other ranks of a node sleep
  together.rethrow();
}

}  // namespace assay::storage
