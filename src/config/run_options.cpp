// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"

namespace assay {
namespace {

OptionSpec option(const char* name, OptionKind kind, const char* default_text, const char* value_name,
                  const char* help, std::vector<std::string> allowed = {}, bool repeatable = false) {
  OptionSpec spec;
  spec.name = name;
  spec.kind = kind;
  spec.default_text = default_text;
  spec.value_name = value_name;
  spec.help = help;
  spec.allowed = std::move(allowed);
  spec.repeatable = repeatable;
  return spec;
}

std::vector<OptionSpec> make_run_options() {
  using enum OptionKind;
  return {
      option("suites", list, "", "NAMES", "suites to run, separated by commas; all when not given", {}, true),
      option("cases", text, "*", "GLOB", "run only cases whose suite/name matches, e.g. 'gemm/fp32-*'"),
      option("level", choice, "quick", "LEVEL",
             "how much to measure: smoke up to 15 s, quick 2 min, standard 15 min, extended 2 h, soak for "
             "--duration",
             {"smoke", "quick", "standard", "extended", "soak"}),
      option("duration", seconds, "", "TIME", "how long a soak lasts, e.g. 8h; only with --level soak"),
      option("segment", seconds, "", "TIME",
             "longest part of a soak in one file, NAME-seg01.h5 ..., each with its own seed; 30m when not given"),
      option("device", choice, "auto", "KIND", "what to measure: auto takes GPUs where built in and present",
             {"auto", "host", "cuda"}),
      option("share-gpus", flag, "", "", "several ranks on one GPU where there are more ranks than GPUs; else those beyond rest"),
      option("out", path, "", "FILE", "results file; assay-<UTC time>.h5 when not given"),
      option("force", flag, "", "", "replace an existing results file"),
      option("resume", path, "", "PARTIAL",
             "go on with the NAME.h5.partial that a run left behind, or with the NAME.h5 of one that ended early (into a "
             "new file): the same options, only what is missing"),
      option("only", text, "", "NODES",
             "measure these nodes of the launch, e.g. node[01-04],gpu7 or a glob; the ranks of the others sleep"),
      option("exclude", text, "", "NODES|FILE", "leave these nodes of the launch out; a file holds one or more per line"),
      option("config", path, "", "FILE", "TOML file with options by their long names; the command line wins"),
      option("seed", integer, "", "N",
             "seed of data, order and sampling; chosen and recorded when not given"),
      option("threads", integer, "", "N", "threads per rank; its share of the cores when not given"),
      option("limits", path, "", "FILE", "TOML file with the limits that metrics must meet"),
      option("baseline", path, "", "FILE|DIR", "earlier run or runs of a healthy fleet: what its median part reached"),
      option("history", path, "", "DIR", "earlier runs of these nodes: every part against its own past"),
      option("topology", path, "", "FILE",
             "where NICs hang: CSV node,nic,switch,port,rack, Slurm topology.conf or ibnetdiscover text; without it no "
             "switch is ever named"),
      option("expect-nodes", integer, "", "N", "number of nodes that must take part"),
      option("expect-ranks", integer, "", "N", "number of ranks that must take part"),
      option("expect-devices", integer, "", "N", "number of devices that every node must have"),
      option("require", list, "", "NAMES",
             "metrics and counters that must be measured although they are optional", {}, true),
      option("telemetry-hz", number, "", "N",
             "samples a second of clocks, power and temperatures, 0.1 to 10, or 0; 1 when not given, 0 at level smoke"),
      option("max-file", bytes, "4GiB", "SIZE", "largest results file that may be planned"),
      option("inject", text, "", "FAULT",
             "make a fault on purpose, e.g. slow:rank=2,factor=0.5; such a run never passes", {}, true),
      option("strict", flag, "", "", "exit 1 when there are warnings"),
      option("json", path, "", "FILE", "write verdict and findings as JSON"),
      option("junit", path, "", "FILE", "write the cases as JUnit XML"),
      option("nodes", path, "", "FILE", "write every node with its state, one per line"),
      option("coverage", path, "", "FILE", "write which links between nodes carried how many bytes, and which none, as CSV"),
      option("prometheus", path, "", "FILE", "write states, findings and medians for node_exporter's textfile collector (NAME.prom)"),
      option("quiet", flag, "", "", "no progress, no log; print only findings and the verdict"),
      option("progress", choice, "auto", "WHEN", "progress line on standard error",
             {"auto", "always", "never"}),
      option("color", choice, "auto", "WHEN", "colour on standard output", {"auto", "always", "never"}),
      option("no-color", flag, "", "", "the same as --color never"),
  };
}

}  // namespace

const std::vector<OptionSpec>& run_options() {
  static const std::vector<OptionSpec> options = make_run_options();
  return options;
}

}  // namespace assay
