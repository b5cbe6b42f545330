// SPDX-License-Identifier: Apache-2.0
#include "run/launch_nodes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <list>
#include <optional>
#include <sstream>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hostlist.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "run/launcher.hpp"

namespace assay {
namespace {

/// Steps of a batch system or logins at the same time: a controller of a large cluster bears more.
constexpr std::size_t most_at_once = 64;
/// Up to so many are asked a second time one after the other.
constexpr std::size_t most_alone = 4;
/// From the request to end to the order.
constexpr double grace_s = 5;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
}

/// "n1:4,n2" as Open MPI takes it.
std::vector<std::string> in_host_list(const std::string& text) {
  std::vector<std::string> names;
  for (const std::string& part : split(text, ',')) add_once(names, part.substr(0, part.find(':')));
  return names;
}

/// The first word of every line, "n1 slots=4" as Open MPI takes it; batch systems write a line for each rank.
std::vector<std::string> in_host_file(const std::string& file) {
  std::vector<std::string> names;
  std::istringstream lines(file.empty() ? "" : read_text(file).value_or(""));
  for (std::string line, name; std::getline(lines, line);)
    if (std::istringstream(line) >> name && name.front() != '#') add_once(names, name);
  return names;
}

std::vector<std::string> in_slurm_list(const std::string& text) {
  try {
    return text.empty() ? std::vector<std::string>{} : expand_hostlist(text);
  } catch (const Error&) {
    return {};
  }
}

/// The value of one of `options`, as "--host n1,n2" or "--host=n1,n2"; the last counts.
std::string value_of(const std::vector<std::string>& words, std::initializer_list<const char*> options) {
  std::string value;
  for (std::size_t i = 0; i < words.size(); ++i)
    for (const std::string option : options) {
      if (words[i] == option && i + 1 < words.size()) value = words[i + 1];
      if (words[i].starts_with(option + "=")) value = words[i].substr(option.size() + 1);
    }
  return value;
}

using Group = std::vector<std::string>;

/// Nodes that are asked together.
struct Asked {
  Asked(Group of, std::vector<std::string> words, const sigset_t& mask)
      : nodes(std::move(of)), process("a launcher", [this, &words, &mask] {
          setpgid(0, 0);  // what it starts is ended with it
          if (const int nothing = open("/dev/null", O_RDONLY); nothing >= 0) dup2(nothing, STDIN_FILENO);
          output.redirect(STDOUT_FILENO);
          output.redirect(STDERR_FILENO);
          return become(words, mask);
        }) {}
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  /// True when it has ended. One that takes too long is ended.
  bool over(double limit_s, bool stop) {
    status = process.ended();
    if (status && ended_s >= 0) ::kill(-process.pid(), SIGKILL);  // what it started
    if (status) return true;
    const double now = now_s();
    late = late || now - begun_s > limit_s;
    if ((late || stop) && ended_s < 0) {
      process.kill(SIGTERM);
      ended_s = now;
    }
    if (ended_s >= 0 && now - ended_s > grace_s) ::kill(-process.pid(), SIGKILL);
    return false;
  }
  bool answered() const { return !late && exit_code_of(*status) == 0; }

  Group nodes;
  CapturedOutput output;
  double begun_s = now_s(), ended_s = -1;
  ChildProcess process;
  bool late = false;
  std::optional<int> status;
};

/// The line that says most, without what a terminal would take for more than text: the last about an error
/// (srun), else the first (ssh, whose line comes before a page of Open MPI's).
std::string telling_line(const std::string& text) {
  constexpr std::size_t most = 160;
  std::string first, error;
  for (std::string line : split(text, '\n')) {
    std::erase_if(line, [](unsigned char c) { return std::iscntrl(c) != 0; });
    if (first.empty() && std::ranges::any_of(line, [](unsigned char c) { return std::isalnum(c) != 0; }))
      first = line;
    if (line.find("error") != std::string::npos) error = line;
  }
  return (error.empty() ? first : error).substr(0, most);
}

std::string reason_of(const Asked& asked, double limit_s) {
  if (asked.late) return fmt::format("no answer within {:.0f} s", limit_s);
  const std::string words = telling_line(asked.output.text());
  return fmt::format("exit code {}{}{}", exit_code_of(*asked.status), words.empty() ? "" : ": ", words);
}

/// Nodes that did not answer.
struct Silent {
  Group nodes;
  std::string why;
  bool late = false;  ///< the time was over
};

/// Starts the program on groups of nodes.
class Asking {
 public:
  Asking(const std::string& launcher, const std::vector<std::string>& program, std::set<std::string> all,
         double limit_s, Signals& signals, const std::function<bool()>& stop)
      : launcher_(launcher),
        program_(program),
        all_(std::move(all)),
        limit_s_(limit_s),
        signals_(signals),
        stop_(stop) {}

  /// Those of `groups` that do not answer, each with its reason.
  std::vector<Silent> silent(const std::vector<Group>& groups, std::size_t at_once = most_at_once) {
    std::vector<Silent> out;
    std::list<Asked> asked;
    for (std::size_t next = 0; next < groups.size() || !asked.empty();) {
      while (next < groups.size() && asked.size() < at_once && !stops())
        asked.emplace_back(groups[next], words_for(groups[next]), signals_.old()), ++next;
      if (stops()) next = groups.size();
      pollfd fd{signals_.fd(), POLLIN, 0};
      poll(&fd, 1, 50);
      signals_.pass_on([](int) {});
      std::erase_if(asked, [&](Asked& one) {
        if (!one.over(limit_s_, stops())) return false;
        if (!one.answered()) out.push_back({one.nodes, reason_of(one, limit_s_), one.late});
        return true;
      });
    }
    return out;
  }

 private:
  bool stops() { return stopped_ = stopped_ || signals_.any() || stop_(); }

  std::vector<std::string> words_for(const Group& group) const {
    std::set<std::string> others = all_;
    for (const std::string& node : group) others.erase(node);
    auto words = launcher_words(launcher_, others);
    words.insert(words.end(), program_.begin(), program_.end());
    return words;
  }

  const std::string& launcher_;
  const std::vector<std::string>& program_;
  std::set<std::string> all_;
  double limit_s_;
  Signals& signals_;
  const std::function<bool()>& stop_;
  bool stopped_ = false;
};

SilentNodes each_of(const std::vector<Silent>& groups) {
  SilentNodes nodes;
  for (const Silent& group : groups)
    for (const std::string& node : group.nodes) nodes.emplace(node, group.why);
  return nodes;
}

/// Groups of `size` nodes.
std::vector<Group> in_groups(const Group& nodes, std::size_t size) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i % size == 0) groups.emplace_back();
    groups.back().push_back(nodes[i]);
  }
  return groups;
}

}  // namespace

std::vector<std::string> launch_nodes(const std::vector<std::string>& words) {
  // Outside a job every question would be a job of its own, in the queue behind what is asked about.
  const bool in_job = !variable("SLURM_JOB_NODELIST").empty();
  const std::vector<std::vector<std::string>> known = {
      in_host_list(value_of(words, {"-H", "-host", "--host"})),
      in_host_file(value_of(words, {"-hostfile", "--hostfile", "-machinefile", "--machinefile"})),
      in_slurm_list(in_job ? value_of(words, {"-w", "--nodelist"}) : ""),
      in_slurm_list(variable("SLURM_JOB_NODELIST")),
      in_host_file(variable("PBS_NODEFILE")),
      in_host_file(variable("LSB_DJOB_HOSTFILE")),
      in_host_file(variable("OMPI_MCA_orte_default_hostfile"))};
  for (const auto& names : known)
    if (!names.empty()) return names;
  return {};
}

SilentNodes silent_nodes(const std::string& launcher, const std::vector<std::string>& program,
                         const std::set<std::string>& nodes, const std::set<std::string>& excluded,
                         double limit_s, Signals& signals, const std::function<bool()>& stop) {
  std::set<std::string> all = nodes;
  all.insert(excluded.begin(), excluded.end());
  Asking asking(launcher, program, std::move(all), limit_s, signals, stop);
  Group suspects(nodes.begin(), nodes.end());
  // Of thousands of nodes few are dead: groups without one answer as a whole.
  if (suspects.size() > most_at_once) {
    const auto groups = in_groups(suspects, suspects.size() / most_at_once + 1);
    const auto quiet = asking.silent(groups);
    // Where none answers in time, it is the launcher: the launch may hold all cores that it needs.
    if (quiet.size() == groups.size() && std::ranges::all_of(quiet, &Silent::late)) return each_of(quiet);
    suspects.clear();
    for (const Silent& group : quiet) suspects.insert(suspects.end(), group.nodes.begin(), group.nodes.end());
  }
  SilentNodes silent;
  Group refused;
  for (const Silent& one : asking.silent(in_groups(suspects, 1))) {
    if (one.late) silent.emplace(one.nodes.front(), one.why);
    if (!one.late) refused.push_back(one.nodes.front());
  }
  // Launchers that start and end at the same time on one host disturb each other: those of Open MPI remove
  // the directory that another one is about to use. So a few nodes are asked again, one after the other.
  const std::size_t at_once = refused.size() <= most_alone ? 1 : most_at_once;
  for (const Silent& one : asking.silent(in_groups(refused, 1), at_once))
    silent.emplace(one.nodes.front(), one.why);
  return silent;
}

}  // namespace assay
