// SPDX-License-Identifier: Apache-2.0
#include "report/html/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/units.hpp"
#include "report/html/markup.hpp"

namespace assay::report {

double Scale::at(double value) const noexcept {
  const double part = logarithmic ? (std::log(value) - std::log(low)) / (std::log(high) - std::log(low))
                                  : (value - low) / (high - low);
  return from + std::clamp(part, -0.02, 1.02) * (to - from);
}

Scale scale_of(const std::vector<double>& values, double from, double to, bool logarithmic) {
  Scale s{std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest(), from, to, logarithmic};
  for (const double v : values) {
    if (!std::isfinite(v) || (logarithmic && v <= 0)) continue;
    s.low = std::min(s.low, v);
    s.high = std::max(s.high, v);
  }
  if (s.low > s.high) s.low = 0, s.high = 1, s.logarithmic = false;
  if (s.logarithmic) {
    const double room = std::max(1.05, std::pow(s.high / s.low, 0.04));
    s.low /= room, s.high *= room;
  } else {
    const double room = s.high > s.low ? 0.05 * (s.high - s.low) : s.high != 0 ? 0.05 * std::abs(s.high) : 1;
    s.low -= room, s.high += room;
  }
  return s;
}

std::vector<double> ticks_of(const Scale& scale, int count) {
  std::vector<double> ticks;
  if (scale.logarithmic) {
    const int first = static_cast<int>(std::ceil(std::log10(scale.low))),
              last = static_cast<int>(std::floor(std::log10(scale.high)));
    if (last - first >= 1) {
      const int step = std::max(1, (last - first) / count);
      for (int e = first; e <= last; e += step) ticks.push_back(std::pow(10.0, e));
      return ticks;
    }
  }
  const double raw = (scale.high - scale.low) / count, power = std::pow(10.0, std::floor(std::log10(raw)));
  const double step = raw / power < 1.5   ? power
                      : raw / power < 3.5 ? 2 * power
                      : raw / power < 7.5 ? 5 * power
                                          : 10 * power;
  for (double k = std::ceil(scale.low / step); k * step <= scale.high && ticks.size() < 20; k += 1)
    ticks.push_back(k * step + 0.0);  // no -0
  return ticks;
}

std::string coordinate(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string svg_line(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>", style, coordinate(x1),
                     coordinate(y1), coordinate(x2), coordinate(y2));
}
std::string svg_text(double x, double y, std::string_view text, const char* style) {
  return fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>", style, coordinate(x), coordinate(y),
                     escaped(text));
}
std::string svg_dot(double x, double y, double radius, const char* style) {
  return fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>", style, coordinate(x),
                     coordinate(y), coordinate(radius));
}
std::string svg_rect(double x, double y, double width, double height, const char* style) {
  return fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", style,
                     coordinate(x), coordinate(y), coordinate(width), coordinate(height));
}
std::string svg_path(const std::vector<std::pair<double, double>>& points, const char* style) {
  std::string d;
  for (const auto& [x, y] : points) d += (d.empty() ? "M" : "L") + coordinate(x) + " " + coordinate(y);
  return fmt::format("<path class=\"{}\" d=\"{}\"/>", style, d);
}
std::string svg_band(const std::vector<double>& x, const std::vector<double>& low,
                     const std::vector<double>& high, const char* style) {
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 0; i < x.size(); ++i) points.emplace_back(x[i], low[i]);
  for (std::size_t i = x.size(); i > 0; --i) points.emplace_back(x[i - 1], high[i - 1]);
  return svg_path(points, style);
}

std::string svg_axis(const Scale& x, double y, double top, std::string_view unit, int count) {
  std::string out = svg_line(x.from, y, x.to, y, "axis");
  for (const double t : ticks_of(x, count))
    out += svg_line(x.at(t), top, x.at(t), y, "grid") +
           svg_text(x.at(t), y + 15, format_quantity(t, unit), "tick middle");
  return out;
}
std::string svg_axis_left(const Scale& y, double x, double right, std::string_view unit, int count) {
  std::string out = svg_line(x, y.from, x, y.to, "axis");
  for (const double t : ticks_of(y, count))
    out += svg_line(x, y.at(t), right, y.at(t), "grid") +
           svg_text(x - 6, y.at(t) + 3.5, format_quantity(t, unit), "tick end");
  return out;
}

std::string svg(double width, double height, const std::string& content, std::string_view label,
                const char* style) {
  return fmt::format("<svg class=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", style,
                     coordinate(width), coordinate(height), escaped(label)) +
         content + "</svg>";
}

std::string figure(const std::string& picture, std::string_view caption, std::string_view chart) {
  const std::string place = chart.empty() ? "" : fmt::format(" data-chart=\"{}\"", escaped(chart));
  return fmt::format("<figure{}><div class=\"picture\">", place) + picture + "</div><figcaption>" +
         escaped(caption) + "</figcaption></figure>\n";
}

std::string svg_histogram(const std::vector<double>& values, const Scale& scale, double height, int bins) {
  std::vector<int> counts(static_cast<std::size_t>(bins));
  int most = 1;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    const double part = (scale.at(v) - scale.from) / (scale.to - scale.from);
    const auto bin = static_cast<std::size_t>(std::clamp(static_cast<int>(part * bins), 0, bins - 1));
    most = std::max(most, ++counts[bin]);
  }
  const double width = (scale.to - scale.from) / bins;
  std::string out;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    // A single part must stay visible beside thousands.
    const double high = std::max(2.0, height * counts[i] / most);
    out += svg_rect(scale.from + static_cast<double>(i) * width, height - high, std::max(1.0, width - 0.6),
                    high, "bar");
  }
  return out;
}

}  // namespace assay::report
