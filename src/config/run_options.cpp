// SPDX-License-Identifier: Apache-2.0
#include "assay/device_kinds.hpp"
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

OptionSpec presentation(OptionSpec spec) {
  spec.use = OptionUse::presentation;
  return spec;
}

/// Set where assay launches itself again.
OptionSpec internal(OptionSpec spec) {
  spec.hidden = true;
  return presentation(std::move(spec));
}

OptionSpec output_file(const char* name, const char* help) {
  OptionSpec spec = option(name, OptionKind::path, "", "FILE", help);
  spec.use = OptionUse::output_file;
  return spec;
}

std::vector<std::string> device_values() {
  std::vector<std::string> values{"auto"};
  for (const char* kind : device_kinds) values.emplace_back(kind);
  return values;
}

using enum OptionKind;

std::vector<OptionSpec> what_to_measure() {
  return {
      option("suites", list, "", "NAMES",
             "suites to run, separated by commas; those of the level when not given (congestion from "
             "extended, burn in soak)",
             {}, true),
      option("cases", text, "*", "GLOB", "run only cases whose suite/name matches, e.g. 'gemm/fp32-*'"),
      option("level", choice, "quick", "LEVEL",
             "how much to measure: smoke up to 15 s, quick 2 min, standard 15 min, extended 2 h, soak for "
             "--duration",
             {"smoke", "quick", "standard", "extended", "soak"}),
      option("duration", seconds, "", "TIME", "duration of a soak, e.g. 8h; only with --level soak"),
      option("segment", seconds, "", "TIME",
             "longest part of a soak in one file, NAME-seg01.h5 ..., each with its own seed; 30m when not "
             "given; --json, --junit, --nodes ... cover all so far, the exit code all, --report the last"),
      option("device", choice, "auto", "KIND",
             "devices to measure; auto: GPUs if at least half of the nodes have one, else the host",
             device_values()),
      option("share-gpus", flag, "", "",
             "let several ranks share one GPU; without it, ranks beyond the number of GPUs of their node "
             "measure nothing"),
  };
}

std::vector<OptionSpec> where_to_run() {
  return {
      presentation(option("out", path, "", "FILE", "results file; assay-<UTC time>.h5 when not given")),
      presentation(option("spool", path, "", "DIR",
                          "store finished cases on this local disk of rank 0's node, uncompressed; merged "
                          "into --out at the end")),
      presentation(option("force", flag, "", "", "replace an existing results file")),
      presentation(option("resume", path, "", "PARTIAL",
                          "run the missing cases of an interrupted run (NAME.h5.partial), or of one that "
                          "ended early (NAME.h5, into a new file); needs the same options")),
      option(
          "only", text, "", "NODES|FILE",
          "measure these nodes of the launch, e.g. node[01-04],gpu7 or a glob, or those that a file holds, "
          "one or more per line; ranks of other nodes stay idle"),
      option("exclude", text, "", "NODES|FILE",
             "leave these nodes of the launch out; a file holds one or more per line"),
      presentation(option(
          "launcher", text, "", "CMD",
          "command that starts the ranks, e.g. 'srun --mpi=pmix -N 16'; {exclude} in it stands for "
          "nodes to leave out; this process stays outside MPI. If neither this option is given nor a "
          "launcher has started assay: mpirun on this machine with a rank per GPU, else per socket; none: "
          "this process is the only rank")),
      presentation(option("relaunch", integer, "2", "N",
                          "with a launcher: launch again up to N times without nodes that were lost, within "
                          "the level's time; not a soak of several segments")),
      internal(option("spent", seconds, "0", "TIME",
                      "internal, set where assay launches itself again: the level's time used before; "
                      "ranks leave the exit code to the results file")),
      internal(option("absent", text, "", "NODE=WHY",
                      "internal, set where assay launches itself again: a node that did not answer when "
                      "the run was to begin, and why",
                      {}, true)),
      presentation(
          option("config", path, "", "FILE",
                 "TOML file with options by their long names; the command line has precedence; one file "
                 "serves several runs: options of suites that do not run, and duration and segment at "
                 "other levels than soak, count for nothing in it; nor does out beside --resume")),
  };
}

std::vector<OptionSpec> what_to_judge_by() {
  return {
      option("seed", integer, "", "N",
             "seed of data, order and sampling; random and recorded when not given"),
      option("threads", integer, "", "N", "threads per rank; its share of the cores when not given"),
      presentation(option("limits", path, "", "FILE", "TOML file with the limits that metrics must meet")),
      presentation(option("baseline", path, "", "FILE|DIR",
                          "earlier run or runs of a healthy fleet; every part is compared with its median")),
      presentation(
          option("history", path, "", "DIR",
                 "directory of earlier runs (may be empty); each part is compared with its own earlier "
                 "results")),
      presentation(option("topology", path, "", "FILE",
                          "connections of NICs to switches: CSV node,nic,switch,port,rack[,rail], Slurm "
                          "topology.conf or ibnetdiscover text; needed for findings about switches")),
      option("expect-nodes", integer, "", "N", "number of nodes that must take part"),
      option("expect-ranks", integer, "", "N", "number of ranks that must take part"),
      option("expect-devices", integer, "", "N", "number of devices that every node must have"),
      option(
          "require", list, "", "NAMES",
          "optional metrics and counters that must be measured; coverage: every core and GPU of every node",
          {}, true),
      option("telemetry-hz", number, "", "N",
             "samples a second of clocks, power and temperatures: 0, or 0.1 to 10; when not given 1 "
             "(level smoke: 0; fewer with thousands of GPUs)"),
      option("max-file", bytes, "", "SIZE",
             "limit for the planned size of the results file; when not given 2.5 MiB for each node, at least "
             "4 GiB"),
      option("inject", text, "", "FAULT",
             "inject a fault, e.g. slow:rank=2,factor=0.5; such a run is never PASS", {}, true),
      option("strict", flag, "", "", "exit 1 when there are warnings"),
  };
}

std::vector<OptionSpec> what_to_write() {
  return {
      output_file("json", "write verdict and findings as JSON"),
      output_file("junit", "write every part by suite, with its warnings and failures, as JUnit XML"),
      output_file("nodes", "write every node with its state, one per line"),
      output_file("coverage", "write the bytes carried by each link between nodes, as CSV"),
      output_file("prometheus",
                  "write states, findings and medians for node_exporter's textfile collector (NAME.prom)"),
      output_file("report", "write the page of assay report"),
      presentation(option("quiet", flag, "", "", "no progress, no log; print only findings and the verdict")),
      presentation(option("progress", choice, "auto", "WHEN", "progress line on standard error",
                          {"auto", "always", "never"})),
      presentation(
          option("color", choice, "auto", "WHEN", "colour on standard output", {"auto", "always", "never"})),
      presentation(option("no-color", flag, "", "", "the same as --color never")),
  };
}

}  // namespace

const std::vector<OptionSpec>& run_options() {
  static const std::vector<OptionSpec> options = [] {
    std::vector<OptionSpec> all;
    for (auto* part : {what_to_measure, where_to_run, what_to_judge_by, what_to_write})
      for (OptionSpec& spec : part()) all.push_back(std::move(spec));
    return all;
  }();
  return options;
}

}  // namespace assay
