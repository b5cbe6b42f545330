// SPDX-License-Identifier: Apache-2.0
#include "run/launch.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "assay/version.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/system.hpp"
#include "topology/discover.hpp"
#include "topology/fabric.hpp"
#include "transport/agree.hpp"

namespace assay {
namespace {

/// The hash of this program that its linker wrote into it; empty where it wrote none. It is in memory
/// already: to read the file again would take a twentieth of the time to start.
std::string build_id() {
  std::string id;
  dl_iterate_phdr(
      [](dl_phdr_info* program, std::size_t, void* out) {
        for (int i = 0; i < program->dlpi_phnum; ++i) {
          const auto& part = program->dlpi_phdr[i];
          if (part.p_type != PT_NOTE) continue;
          // NOLINTNEXTLINE(performance-no-int-to-ptr): where the loader put it
          const auto* note = reinterpret_cast<const char*>(program->dlpi_addr + part.p_vaddr);
          const std::size_t alignment = std::max<std::size_t>(part.p_align, 4);
          const auto aligned = [&](std::size_t size) {
            return (size + alignment - 1) / alignment * alignment;
          };
          for (const char* end = note + part.p_memsz; note + sizeof(ElfW(Nhdr)) <= end;) {
            ElfW(Nhdr) head;
            std::memcpy(&head, note, sizeof head);
            const char* name = note + sizeof head;
            const char* text = note + aligned(sizeof head + head.n_namesz);
            if (head.n_type == NT_GNU_BUILD_ID &&
                std::string_view(name, head.n_namesz) == std::string_view("GNU", 4))
              for (std::size_t byte = 0; byte < head.n_descsz; ++byte)
                *static_cast<std::string*>(out) +=
                    fmt::format("{:02x}", static_cast<unsigned char>(text[byte]));
            note += aligned(static_cast<std::size_t>(text - note) + head.n_descsz);
          }
        }
        return 1;  // the first is the program
      },
      &id);
  return id;
}

constexpr double nvml_hang_s = 5;

/// What NVML may take to start. Discovery as a whole has 60 s, at level smoke 10 s
/// (Controller::phase_deadline_s).
double nvml_start_s(const Config& config) { return std::min(50.0, config.budget_s() / 2); }

/// "3, 7 and 12", at most eight of them.
std::string rank_list(const std::vector<int>& ranks) {
  std::string out;
  for (std::size_t i = 0; i < ranks.size() && i < 8; ++i)
    out += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  if (ranks.size() > 8) out += fmt::format(" and {} more", ranks.size() - 8);
  return out;
}

std::vector<int> differing(const std::vector<std::string>& texts) {
  std::vector<int> ranks;
  for (std::size_t i = 1; i < texts.size(); ++i)
    if (texts[i] != texts[0]) ranks.push_back(static_cast<int>(i));
  return ranks;
}

}  // namespace

void agree_software(Communicator& world, const Config& config) {
  const std::vector<std::pair<std::string, std::string>> facts = {
      {"version", ASSAY_VERSION},
      {"executable", build_id()},
      {"options", fmt::format("{:016x}", hash_text(config.to_json(true).dump()))}};
  std::string mine;
  for (const auto& [name, value] : facts) mine += value + "\n";
  // One exchange; the facts are taken apart only when something differs.
  const auto all = world.all_gather_text(mine);
  if (differing(all).empty()) return;
  std::size_t begin = 0;
  for (const auto& [name, value] : facts) {
    std::vector<std::string> column;
    for (const auto& text : all) {
      std::size_t line = 0, from = 0;
      while (line < begin) from = text.find('\n', from) + 1, ++line;
      column.push_back(text.substr(from, text.find('\n', from) - from));
    }
    const auto ranks = differing(column);
    if (!ranks.empty())
      throw_usage(fmt::format("rank{} {} differ{} from rank 0 in {}: all ranks must run the same {}",
                              ranks.size() == 1 ? "" : "s", rank_list(ranks), ranks.size() == 1 ? "s" : "",
                              name, name));
    ++begin;
  }
}

void agree_plan(Communicator& world, const std::string& hash) {
  const auto ranks = differing(world.all_gather_text(hash));
  if (!ranks.empty())
    throw Error(ErrorKind::internal,
                fmt::format("rank(s) {} made another plan than rank 0", rank_list(ranks)));
}

std::string place_nics(const Config& config, Topology& topology) {
  if (config.topology_text.empty()) return "";
  const Fabric fabric = parse_fabric(config.topology_text, config.topology_file);
  const FabricCoverage coverage = apply_fabric(fabric, topology);
  if (coverage.nodes == 0)
    throw_usage(fmt::format("--topology: {} lists no NIC of this job's nodes (first node: {})",
                            config.topology_file,
                            topology.nodes.empty() ? "" : topology.nodes.front().hostname));
  return describe_fabric(fabric, coverage, topology);
}

std::vector<LaunchFinding> absent_findings(const Config& config) {
  std::vector<LaunchFinding> findings;
  for (const std::string& text : config.options.list("absent")) {
    const auto end = std::min(text.find('='), text.size());
    const std::string node = text.substr(0, end), why = text.substr(std::min(end + 1, text.size()));
    findings.push_back({"inconclusive", "lost",
                        fmt::format("{}: did not answer when the run was to begin{}{}; the run continues "
                                    "without it",
                                    node, why.empty() ? "" : ": ", why),
                        -1, node});
  }
  return findings;
}

Job discover_job(MpiSession& mpi, const Config& config, const std::vector<std::unique_ptr<Suite>>& suites,
                 const DeviceSelection& devices, std::unique_ptr<Communicator> node) {
  const double begin = now_s();
  Job job;
  Communicator& world = mpi.world();
  job.node = std::move(node);
  job.leaders = world.split(job.node->rank() == 0 ? 0 : -1, world.rank());
  std::string description;
  std::vector<std::string> listed;
  together(world, [&] {
    if (job.node->rank() != 0) return;
    Node found = probe_node();
    if (!devices.host.empty()) found.hostname = devices.host;  // findings of the devices name it so
    job.nvml = probe_gpus(found, nvml_hang_s, nvml_start_s(config));
    listed = found.gpu_uuids;
    description = to_json(found).dump();
  });
  const std::string first = world.broadcast_text(description, 0);
  if (!description.empty() && !first.empty() && world.rank() != 0)
    description = differences(Json::parse(description), Json::parse(first)).dump();
  const Json leader = Json::parse(
      job.node->broadcast_text(Json{{"rank", world.rank()}, {"gpus", std::move(listed)}}.dump(), 0));
  std::vector<std::string> unlisted = devices.visible_gpus;
  for (const std::string gpu : leader.at("gpus")) std::erase(unlisted, gpu);
  RankFacts facts = own_facts(leader.at("rank"), job.node->rank(), std::move(unlisted));
  facts.device = devices.kind;
  facts.gpu = devices.gpu;
  if (devices.on_gpus()) {
    facts.gpu_free_bytes = devices.look.free_bytes;
    facts.gpu_sweep_rate = devices.look.sweep_rate;
    facts.no_products = devices.look.no_products;
    if (devices.look.device) facts.compute = devices.look.device->identity()["compute"];
  }
  for (const auto& suite : suites)
    if (std::find(config.suites.begin(), config.suites.end(), suite->name()) != config.suites.end())
      facts.lacks.merge(suite->lacks(config, devices.on_gpus()));
  job.texts = {world.all_gather_text(description), world.all_gather_text(to_text(facts))};
  job.topology = discover(job.texts.nodes, job.texts.places, world.rank(), static_cast<int>(config.threads));
  job.fabric = place_nics(config, job.topology);
  LaunchEnvironment launch = launch_environment();
  const bool whole = config.only.empty() && config.exclude.empty() && !devices.parts_of_nodes;
  if (!whole) launch.size = launch.local_size = -1;  // it counts ranks that take no part
  const LaunchExpectations expect{config.expect_nodes, config.expect_ranks, config.expect_devices,
                                  config.device == "host"};
  job.findings =
      check_launch(job.topology, expect, launch, whole && world.size() == 1 ? count_sibling_singletons() : 0);
  for (const auto& note : devices.notes) {
    job.findings.push_back(note.finding);
    if (note.finding.kind == "uncovered") job.findings.back().severity = expect.severity_of_uncovered();
    LaunchFinding& finding = job.findings.back();
    for (std::size_t n = 0; n < job.topology.nodes.size(); ++n)
      if (job.topology.nodes[n].hostname == note.host) finding.node = static_cast<int>(n);
    if (finding.node < 0) finding.left_out = note.host;
  }
  for (LaunchFinding& finding : absent_findings(config)) job.findings.push_back(std::move(finding));
  job.probe_s = now_s() - begin;
  return job;
}

}  // namespace assay
