#include "shapes.hpp"

#include <lade/buffer.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/media/png.hpp>
#include <lade/random.hpp>
#include <lade/run.hpp>
#include <lade/tensor.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <string>
#include <string_view>

namespace {

constexpr int side = 80;
constexpr double pi = std::numbers::pi;

struct point {
  double x;
  double y;
};

// How far a point is outside of a shape that fills most of [-1, 1]; negative inside.
using distance = double (*)(point);

double radius(point p) { return std::hypot(p.x, p.y); }

double disc(point p) { return radius(p) - 0.8; }

double ring(point p) { return std::abs(radius(p) - 0.62) - 0.18; }

double square(point p) { return std::max(std::abs(p.x), std::abs(p.y)) - 0.68; }

double bar(point p) { return std::max(std::abs(p.x) - 0.9, std::abs(p.y) - 0.22); }

double cross(point p) { return std::min(bar(p), bar({p.y, p.x})); }

double crescent(point p) { return std::max(disc(p), 0.65 - radius({p.x - 0.4, p.y})); }

double half_disc(point p) { return std::max(radius({p.x, p.y + 0.3}) - 0.85, -p.y - 0.3); }

// The angle to the nearest of `corners` directions, -pi / corners to pi / corners.
double folded_angle(point p, int corners) {
  const double step = 2 * pi / corners;
  const double angle = std::atan2(p.y, p.x);
  return angle - step * std::round(angle / step);
}

template <int Sides>
double polygon(point p) {
  return radius(p) * std::cos(folded_angle(p, Sides)) - 0.85 * std::cos(pi / Sides);
}

double star(point p) {
  const double angle = std::abs(folded_angle(p, 5));
  const point folded{radius(p) * std::cos(angle), radius(p) * std::sin(angle)};
  const point tip{0.95, 0};
  const point notch{0.38 * std::cos(pi / 5), 0.38 * std::sin(pi / 5)};
  const point edge{notch.x - tip.x, notch.y - tip.y};
  return ((folded.y - tip.y) * edge.x - (folded.x - tip.x) * edge.y) / -radius(edge);
}

struct shape {
  std::string_view name;
  distance outside;
};

constexpr std::array<shape, 10> shapes{{{"bar", bar},
                                        {"crescent", crescent},
                                        {"cross", cross},
                                        {"disc", disc},
                                        {"half_disc", half_disc},
                                        {"pentagon", polygon<5>},
                                        {"ring", ring},
                                        {"square", square},
                                        {"star", star},
                                        {"triangle", polygon<3>}}};

using colour = std::array<double, 3>;

colour draw_colour(lade::random& draw, double darkest, double brightest) {
  colour drawn{};
  for (auto& level : drawn) level = draw.uniform(darkest, brightest);
  return drawn;
}

colour mixed(const colour& a, const colour& b, double share) {
  return {std::lerp(a[0], b[0], share), std::lerp(a[1], b[1], share), std::lerp(a[2], b[2], share)};
}

// The random values of a picture, except for its noise.
struct scene {
  explicit scene(lade::random& draw)
      : top(draw_colour(draw, 0, 130)),
        bottom(draw_colour(draw, 0, 130)),
        paint(draw_colour(draw, 120, 255)),
        scale(draw.uniform(16, 34)),
        centre{draw.uniform(scale, side - scale), draw.uniform(scale, side - scale)},
        turn(draw.uniform(0, 2 * pi)) {}

  point to_shape(double x, double y) const {
    const double dx = (x - centre.x) / scale;
    const double dy = (y - centre.y) / scale;
    return {dx * std::cos(turn) - dy * std::sin(turn), dx * std::sin(turn) + dy * std::cos(turn)};
  }

  colour top, bottom, paint;
  double scale;  // pixels
  point centre;
  double turn;  // radians
};

lade::tensor draw_picture(const shape& figure, lade::random draw) {
  const scene seen(draw);
  lade::tensor picture(lade::element_type::u8, {side, side, 3});
  auto* out = picture.data<std::uint8_t>();
  for (int y = 0; y < side; ++y) {
    const auto behind = mixed(seen.top, seen.bottom, y / (side - 1.0));
    for (int x = 0; x < side; ++x) {
      const double outside = figure.outside(seen.to_shape(x, y)) * seen.scale;  // pixels
      const auto seen_here = mixed(seen.paint, behind, std::clamp(outside + 0.5, 0.0, 1.0));
      for (double level : seen_here)
        *out++ = static_cast<std::uint8_t>(std::clamp(level + draw.uniform(-30, 30), 0.0, 255.0));
    }
  }
  return picture;
}

void write_file(const std::string& path, const lade::buffer& bytes) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << bytes.text() << std::flush;
  if (!file) lade::raise(errno ? errno : EIO, "write " + path);
}

void draw_part(lade::runtime& runtime, const std::string& folder, std::uint64_t images,
               std::uint64_t seed) {
  for (const auto& each : shapes)
    std::filesystem::create_directories(folder + '/' + std::string(each.name));
  auto draw_file = [folder, seed](std::uint64_t index) {
    const auto& figure = shapes[index % shapes.size()];
    const auto number = std::to_string(index / shapes.size());
    write_file(folder + '/' + std::string(figure.name) + '/' + number + ".png",
               lade::media::encode_png(draw_picture(figure, lade::random(seed, index))));
    return index;
  };
  auto all = lade::from_index(images * shapes.size(), [](std::uint64_t index) { return index; }) |
             lade::map(draw_file);
  for (auto& drawn : runtime.run(all)) (void)drawn;
}

}  // namespace

void draw_shapes(lade::runtime& runtime, const std::string& root, const shapes_options& options) {
  draw_part(runtime, root + "/train", options.images, lade::scramble(options.seed));
  draw_part(runtime, root + "/test", options.held_out, lade::scramble(options.seed + 1));
}
