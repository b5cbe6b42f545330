// SPDX-License-Identifier: Apache-2.0
// Pictures that need no script: inline SVG coloured by the page's style sheet.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::report {

// Coordinates and sizes are in units of the picture's viewBox (pixels at its natural size), y downwards.
// `style` is a class of the style sheet.

/// Maps values to coordinates, linear or logarithmic.
struct Scale {
  double low = 0, high = 1;  ///< values at the ends
  double from = 0, to = 1;   ///< coordinates of these
  bool logarithmic = false;
  double at(double value) const noexcept;  ///< the coordinate of a value
};
/// A scale around all finite `values`, with some room; a single value gets room, too.
Scale scale_of(const std::vector<double>& values, double from, double to, bool logarithmic = false);
/// Round numbers on it, about `count`.
std::vector<double> ticks_of(const Scale& scale, int count = 5);

/// "12.3": short and the same everywhere.
std::string coordinate(double value);
std::string svg_line(double x1, double y1, double x2, double y2, const char* style);
std::string svg_text(double x, double y, std::string_view text, const char* style);
std::string svg_dot(double x, double y, double radius, const char* style);
std::string svg_rect(double x, double y, double width, double height, const char* style);
std::string svg_path(const std::vector<std::pair<double, double>>& points, const char* style);
/// The area between two lines over the same x.
std::string svg_band(const std::vector<double>& x, const std::vector<double>& low,
                     const std::vector<double>& high, const char* style);
/// Ticks and their numbers below a plot whose bottom is at y, with faint lines up to `top`.
std::string svg_axis(const Scale& x, double y, double top, std::string_view unit, int count = 5);
/// The same at the left of a plot.
std::string svg_axis_left(const Scale& y, double x, double right, std::string_view unit, int count = 4);
/// A whole picture. `label` is its text for screen readers.
std::string svg(double width, double height, const std::string& content, std::string_view label,
                const char* style = "plot");
/// A picture with its caption and, in the interactive page, the place of a chart: `chart` names what is drawn
/// there (JSON member, index).
std::string figure(const std::string& picture, std::string_view caption, std::string_view chart = "");

/// Bars of a histogram over `scale`, as high as `height`, standing on y = height.
std::string svg_histogram(const std::vector<double>& values, const Scale& scale, double height, int bins);

}  // namespace assay::report
