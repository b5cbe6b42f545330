// SPDX-License-Identifier: Apache-2.0
#include "cli/import_command.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "base/error.hpp"
#include "base/system.hpp"
#include "cli/output.hpp"
#include "config/config.hpp"
#include "import/import.hpp"
#include "results/reader.hpp"
#include "results/save.hpp"
#include "results/writer.hpp"
#include "verdict/verdict.hpp"

namespace assay::cli {
namespace {

using Import = results::Results (*)(const Inputs&);

constexpr std::pair<const char*, Import> formats[] = {
    {"csv", imports::import_csv}, {"nccl-tests", imports::import_nccl_tests}, {"osu", imports::import_osu}};

Import import_of(const std::string& format) {
  std::string known;
  for (const auto& [name, import] : formats) {
    if (format == name) return import;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw_usage("import: '" + format + "' is no format (" + known + ")");
}

/// A file that is read twice would count as evidence twice, whatever its names.
void check_once(const std::vector<std::string>& files) {
  std::map<std::pair<dev_t, ino_t>, std::string> seen;
  for (const std::string& file : files) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) continue;  // the reader says why
    const auto [first, fresh] = seen.try_emplace({status.st_dev, status.st_ino}, file);
    if (fresh) continue;
    throw_usage(fmt::format("import: '{}' is given twice{}", file,
                            first->second == file ? "" : fmt::format(", also as '{}'", first->second)));
  }
}

}  // namespace

CommandSpec import_command_spec() {
  OptionSpec output, force;
  output.name = "output";
  output.kind = OptionKind::path;
  output.value_name = "FILE";
  output.help = "results file to write";
  output.short_name = 'o';
  for (const OptionSpec& option : run_options())
    if (option.name == "force") force = option;
  return {"import",
          "convert measurements of other tools into a results file",
          "assay import csv|nccl-tests|osu FILES -o FILE [--force]",
          {{"FORMAT", "csv, nccl-tests (text or JSON) or osu", true, {"csv", "nccl-tests", "osu"}},
           {"FILES", "output of the other tool", true, {}, true}},
          {output, force},
          {"assay import csv sgemm.csv -o sgemm.h5", "assay import nccl-tests run*.json -o nccl.h5",
           "assay import osu osu_bw@node01,node02.txt -o osu.h5"},
          "CSV has one row per sample and a header: node,device,metric,unit,better,\n"
          "sample,value[,time][,clock_hz][,block][,retest]; pairs have src,dst (NODE or\n"
          "NODE/DEVICE) instead of node,device. time is in seconds or ISO 8601. retest (or\n"
          "a metric named sgemm.c1) numbers measurements of suspects, 0 the first of all.\n"
          "A column NAME[UNIT] belongs to the sample, any other one is an attribute of the\n"
          "part, such as model or rack. A row with sample or time that repeats an earlier\n"
          "one counts once; rows without a value (empty or N/A) are left out. Semicolons or\n"
          "tabs may separate instead of commas. A file of nccl-tests may hold several\n"
          "outputs.\n"
          "Output of OSU has no nodes: add a line '# nodes: A B', or name the file\n"
          "NAME@A,B.txt (also n[01-16], as Slurm writes it).\n"
          "A file without any value, such as that of a test that was stopped, makes the\n"
          "verdict INCONCLUSIVE.\n"
          "Exit codes: 0, 3 when the file cannot be written, 4 when the input cannot be\n"
          "read."};
}

ExitCode import_command(const Parsed& parsed, const std::string& command_line) {
  const OptionValues values = option_values(parsed);
  const Import import = import_of(parsed.positionals.front());
  if (!values.has("output")) throw_usage("import: -o FILE is missing (usage: " + parsed.command->usage + ")");
  const std::string file = values.text("output");
  const std::vector<std::string> inputs{parsed.positionals.begin() + 1, parsed.positionals.end()};
  check_once(inputs);
  check_outputs({{"--output", file}}, inputs);
  check_results_output("--output", file, values.flag("force"));
  results::Results results = results::read_results(inputs, import);
  results.info.command_line = command_line;
  results.verdict = verdict::judge(results, {});
  results.info.verdict = results.verdict->state;
  results::save(results, file, values.flag("force"));
  print(fmt::format("{}: {}; {} case{}, {} part{}: {}\n", file, results.events.front().text,
                    results.cases.size(), results.cases.size() == 1 ? "" : "s", results.entities.size() - 1,
                    results.entities.size() == 2 ? "" : "s", results.verdict->state));
  for (std::size_t e = 1; e < results.events.size(); ++e)
    if (results.events[e].kind == "imported" || results.events[e].kind == "launch-inconclusive")
      print(file + ": " + results.events[e].text + "\n");
  return ExitCode::pass;
}

ExitCode without_rest(const Parsed& parsed, const std::function<ExitCode()>& import) {
  const OptionValues values = option_values(parsed);
  if (!values.has("output")) return import();
  const auto rest = results::partial_of(target_of(values.text("output")));
  std::error_code ignored;
  const bool before = std::filesystem::exists(rest, ignored);
  try {
    return import();
  } catch (const Error&) {
    if (!before) std::filesystem::remove_all(rest, ignored);
    throw;
  }
}

}  // namespace assay::cli
