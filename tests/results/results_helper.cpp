// SPDX-License-Identifier: Apache-2.0
// What the Python tests of the results file need from the library, as commands.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "results/export.hpp"
#include "results/reader.hpp"
#include "results/schema.hpp"
#include "tests/results/example_results.hpp"

namespace assay::results {
namespace {

/// Entities that stored cases have added are not added again.
CaseBundle without_known(CaseBundle bundle, const Writer& writer) {
  std::erase_if(bundle.new_entities, [&](const Entity& e) {
    return std::ranges::any_of(writer.known_entities(),
                               [&](const Entity& known) { return known.id == e.id; });
  });
  return bundle;
}

/// Says "stored NAME" after every case, so that whoever kills this process knows what must have survived.
void write_cases(Writer& writer, int cases) {
  for (int i = 0; i < cases; ++i) {
    const CaseBundle bundle = example::bundle(i);
    if (writer.stored().contains(bundle.data.path())) continue;
    writer.add_case(without_known(bundle, writer));
    writer.add_event({0.1 * i, -1, "case", bundle.data.path()});
    std::printf("stored %s\n", bundle.data.path().c_str());
    std::fflush(stdout);
  }
}

constexpr int many_cases = 1000;  ///< several times as many as are written before the latest kill

void write_until_killed(const std::string& file, int cases) {
  Writer writer = Writer::create(file, example::start(cases), false);
  write_cases(writer, cases);
}

/// Goes on where a killed one left, and finishes when nobody kills this one.
void resume_until_killed(const std::string& partial, int cases) {
  Writer writer = Writer::resume(partial, example::start(cases), false);
  std::printf("resumed %zu\n", writer.stored().size());
  std::fflush(stdout);
  write_cases(writer, cases);
  writer.finish(example::verdict(cases), "complete");
}

/// Processor time of this process, which other load on the machine does not lengthen much.
double cpu_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void bench(const std::string& file, int cases, std::size_t entities, std::size_t samples) {
  Writer writer = Writer::create(file, example::start(), true);
  std::vector<double> times;
  double cpu = 0;
  for (int i = 0; i < cases; ++i) {
    const CaseBundle bundle = example::bundle(i, entities, samples);
    const double begin = now_s();
    cpu -= cpu_s();
    writer.add_case(bundle);
    cpu += cpu_s();
    times.push_back(now_s() - begin);
  }
  std::sort(times.begin(), times.end());
  double begin = now_s();
  const Results partial = load(writer.partial());
  std::printf("add_case: median %.3g ms, max %.3g ms, processor %.3g ms; load of the directory %.3g s\n",
              1e3 * times[times.size() / 2], 1e3 * times.back(), 1e3 * cpu / cases, now_s() - begin);
  begin = now_s();
  cpu = cpu_s();
  writer.finish(example::verdict(0), "complete");
  const double merged = now_s() - begin;
  cpu = cpu_s() - cpu;
  begin = now_s();
  const Results read = load(file);
  std::printf("merge %.3g s, processor %.3g s, %.4g MB; load of the file %.3g s\n", merged, cpu,
              1e-6 * static_cast<double>(std::filesystem::file_size(file)), now_s() - begin);
}

int check(const std::string& file) {
  const auto problems = check_file(file);
  for (const std::string& problem : problems) std::cout << problem << '\n';
  return problems.empty() ? 0 : 1;
}

void show(const std::string& path) {
  const Results r = load(path);
  std::cout << "state " << r.info.state << '\n';
  for (const CaseData& c : r.cases) std::cout << "case " << c.path() << ' ' << to_string(c.state) << '\n';
  double sum = 0;
  for (const auto& [name, values] : r.telemetry.number)
    for (std::size_t i = 0; i < values.size(); ++i)
      sum += std::isnan(values[i]) ? 0 : values[i] * (1 + r.telemetry.entity[i]) + r.telemetry.t[i];
  std::cout << "telemetry " << r.telemetry.t.size() << ' ' << sum << '\n';
  for (const EventRow& e : r.events) std::cout << "event " << e.kind << ' ' << e.text << '\n';
}

int run(const std::vector<std::string>& args) {
  const auto is = [&](const char* name, std::size_t count) {
    return args.size() == count + 1 && args[0] == name;
  };
  if (is("write", 2)) {
    example::write(args[1], std::stoi(args[2]));
  } else if (is("write-until-killed", 1)) {
    write_until_killed(args[1], many_cases);
  } else if (is("write-until-killed", 2)) {
    write_until_killed(args[1], std::stoi(args[2]));
  } else if (is("resume-until-killed", 2)) {
    resume_until_killed(args[1], std::stoi(args[2]));
  } else if (is("recover", 2)) {
    recover(args[1], args[2], false);
  } else if (is("check", 1)) {
    return check(args[1]);
  } else if (is("show", 1)) {
    show(args[1]);
  } else if (is("csv", 1)) {
    export_csv(load(args[1]), std::cout);
  } else if (is("jsonl", 1)) {
    export_jsonl(load(args[1]), std::cout);
  } else if (is("bench", 4)) {
    bench(args[1], std::stoi(args[2]), std::stoul(args[3]), std::stoul(args[4]));
  } else {
    std::cerr << "unknown command\n";
    return 64;
  }
  return 0;
}

}  // namespace
}  // namespace assay::results

int main(int argc, char** argv) {
  try {
    return assay::results::run({argv + 1, argv + argc});
  } catch (const assay::Error& error) {
    std::cerr << error.what() << '\n';
    return static_cast<int>(error.exit_code());
  }
}
