// SPDX-License-Identifier: Apache-2.0
// A results file as it is, and the texts of a partial directory behind their checksums.
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "results/json_io.hpp"
#include "results/schema.hpp"
#include "results/writer.hpp"
#include "tests/fuzz/clean.hpp"
#include "tests/results/example_results.hpp"

namespace assay::fuzz {
namespace {

namespace fs = std::filesystem;

void put(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

/// By streams, which go on after a signal, unlike fs::copy: the fuzzer sends itself some.
void copy_directory(const fs::path& from, const fs::path& to) {
  fs::create_directory(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    const fs::path target = to / entry.path().filename();
    if (entry.is_directory()) {
      copy_directory(entry.path(), target);
    } else {
      std::ifstream in(entry.path(), std::ios::binary);
      std::ofstream out(target, std::ios::binary | std::ios::trunc);
      if (in.peek() != std::ifstream::traits_type::eof()) out << in.rdbuf();
    }
  }
}

/// The text with a checksum that fits, if it is an object at all.
std::string sealed(const std::string& text) {
  try {
    Json json = results::parse(text);
    if (!json.is_object()) return text;
    json.erase("checksum");
    return results::dump_sealed(json);
  } catch (const std::exception&) {
    return text;
  }
}

/// Every line of events gets its own.
std::string sealed_lines(const std::string& text) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    out += sealed(text.substr(begin, end - begin));
    if (end == std::string::npos) break;
    out += '\n';
    begin = end + 1;
  }
  return out;
}

/// A partial directory with three cases, made once; every input replaces its texts.
fs::path prepared_directory() {
  const fs::path file = fs::path(scratch_directory()) / "run.h5";
  results::Writer writer = results::Writer::create(file, results::example::start(3), false);
  for (int i = 0; i < 3; ++i) writer.add_case(results::example::bundle(i));
  return writer.partial();
}

}  // namespace

void bytes(const std::string& input) {
  const std::string path = scratch_directory() + "/bytes.h5";
  put(path, input);
  clean([&] { use_results(path); });
  clean([&] { results::check_file(path); });
}

/// Four texts, each ended by a line %%: plan.json, end.json, events.jsonl, owner. An empty one means no file.
void partial(const std::string& input) {
  static const fs::path directory = prepared_directory();
  std::array<std::string, 4> texts;
  std::size_t begin = 0;
  for (std::string& text : texts) {
    const std::size_t end = std::min(input.find("\n%%\n", begin), input.size());
    text = input.substr(begin, end - begin);
    begin = std::min(end + 4, input.size());
  }
  constexpr std::array names{"plan.json", "end.json", "events.jsonl", "owner"};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const fs::path path = directory / names[i];
    fs::remove(path);
    if (!texts[i].empty()) put(path, i == 3 ? texts[i] : i == 2 ? sealed_lines(texts[i]) : sealed(texts[i]));
  }
  clean([&] { use_results(directory); });
  const fs::path copy = fs::path(scratch_directory()) / "copy.h5.partial",
                 out = fs::path(scratch_directory()) / "out.h5";
  fs::remove_all(copy);
  fs::remove(out);
  copy_directory(directory, copy);
  if (clean([&] { results::recover(copy, out, false); })) clean([&] { use_results(out); });
}

}  // namespace assay::fuzz
