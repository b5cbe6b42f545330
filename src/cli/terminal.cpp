// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/system.hpp"

namespace assay::cli {
namespace {

/// Where descriptor 1 of the parent process leads, or "" when that cannot be seen.
std::string parents_output() {
  const std::string path = "/proc/" + std::to_string(getppid()) + "/fd/1";
  char target[256];
  const ssize_t length = readlink(path.c_str(), target, sizeof target);
  return length <= 0 ? "" : std::string(target, static_cast<std::size_t>(length));
}

std::optional<int> parsed_width(const char* text) {
  if (text == nullptr) return std::nullopt;
  const long value = std::strtol(text, nullptr, 10);
  if (value < 1 || value > 10000) return std::nullopt;
  return static_cast<int>(value);
}

int output_width(bool terminal) {
  constexpr int usual = 80, least = 60, most = 200;
  if (!terminal) return usual;
  std::optional<int> width = parsed_width(std::getenv("COLUMNS"));
  winsize size{};
  if (!width && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) width = size.ws_col;
  return std::clamp(width.value_or(usual), least, most);
}

}  // namespace

bool output_is_terminal() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  if (!launch_environment().launched) return true;
  const std::string target = parents_output();
  return target.starts_with("/dev/pts/") || target.starts_with("/dev/tty") || target == "/dev/console";
}

report::Style output_style(const std::string& color) {
  const bool terminal = output_is_terminal();
  report::Style style;
  style.width = output_width(terminal);
  const char* no_color = std::getenv("NO_COLOR");
  const bool refused = no_color != nullptr && no_color[0] != '\0';
  style.color = color == "always" || (color == "auto" && terminal && !refused);
  return style;
}

}  // namespace assay::cli
