// CPU time of decoding JPEGs to planes of Y, Cb and Cr: lade's own decoder with one image and with
// two at a time, against libjpeg-turbo. Prints a line of JSON per figure: medians over rounds in
// which the contestants take turns.

#include "../../media/jpeg_image.hpp"
#include "bench.hpp"
#include "jpeg_corpus.hpp"

#include <time.h>

#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <jpeglib.h>

namespace lade::media {

using files = std::vector<sample>;

// All of each image, planes as they are stored, into memory that is there.
class turbo_planes {
 public:
  turbo_planes() {
    jpeg_.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&jpeg_);
  }
  ~turbo_planes() { jpeg_destroy_decompress(&jpeg_); }

  void operator()(const files& all) {
    for (const auto& file : all) decode(file);
  }

 private:
  void decode(const sample& file) {
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(file.data().data()),
                 file.data().size());
    jpeg_read_header(&jpeg_, TRUE);
    jpeg_.raw_data_out = TRUE;
    jpeg_.out_color_space = jpeg_.jpeg_color_space;
    jpeg_start_decompress(&jpeg_);
    const auto lines = static_cast<JDIMENSION>(jpeg_.max_v_samp_factor * DCTSIZE);
    for (std::size_t c = 0; c < 3; ++c) {
      const auto& component = jpeg_.comp_info[c];
      const auto rows = component.height_in_blocks + unsigned(component.v_samp_factor);
      planes_[c].resize(std::size_t{component.width_in_blocks} * rows * DCTSIZE2);
    }
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPARRAY planes[] = {rows_[0].data(), rows_[1].data(), rows_[2].data()};
      point_rows(jpeg_.output_scanline / lines);
      jpeg_read_raw_data(&jpeg_, planes, lines);
    }
    jpeg_finish_decompress(&jpeg_);
  }

  void point_rows(std::size_t row_of_mcus) {
    for (std::size_t c = 0; c < 3; ++c) {
      const auto& component = jpeg_.comp_info[c];
      const auto count = static_cast<std::size_t>(component.v_samp_factor * DCTSIZE);
      const auto stride = std::size_t{component.width_in_blocks} * DCTSIZE;
      for (std::size_t y = 0; y < count; ++y)
        rows_[c][y] = planes_[c].data() + (row_of_mcus * count + y) * stride;
    }
  }

  jpeg_error_mgr errors_;
  jpeg_decompress_struct jpeg_;
  std::array<std::vector<std::uint8_t>, 3> planes_;
  std::array<std::array<JSAMPROW, 2 * DCTSIZE>, 3> rows_;
};

// The same by lade. Rows of two images are asked for in turns, so that both of large ones, of which
// a few rows are in memory, go on. A slot whose image is complete takes the next one at once.
class lade_planes {
 public:
  lade_planes(simd level, bool two) {
    for (auto& each : std::span(slots_).first(two ? 2 : 1))
      each.image = std::make_unique<jpeg_image>(level);
  }

  void operator()(const files& all) {
    next_ = 0;
    for (auto& each : slots_) open(each, all);
    for (std::size_t turn = 0; slots_[0].open || slots_[1].open; turn = 1 - turn) {
      auto &slot = slots_[turn], &other = slots_[1 - turn];
      if (!slot.open) continue;
      if (!slot.image->decode(slot.row, other.open ? other.image.get() : nullptr))
        bench::fail("an image is not decoded");
      if (++slot.row < slot.image->headers().height) continue;
      slot.image->close();
      open(slot, all);
    }
  }

 private:
  struct planes_slot {
    std::unique_ptr<jpeg_image> image;  // none: never open
    bool open = false;
    int row = 0;
  };

  void open(planes_slot& into, const files& all) {
    into.open = into.image != nullptr && next_ < all.size();
    if (!into.open) return;
    auto& image = *into.image;
    if (!image.open(all[next_++].data().bytes(), tables_)) bench::fail("an image is not taken");
    image.begin({.right = image.headers().width, .bottom = image.headers().height}, 1);
    into.row = 0;
  }

  std::array<planes_slot, 2> slots_;
  jpeg_table_cache tables_;
  std::size_t next_ = 0;
};

struct planes_contestant {
  std::string figure;
  std::function<void(const files&)> run;
  std::vector<double> us{};
  std::vector<double> ratios{};  // how much faster than the first
};

static planes_contestant by_lade(std::string figure, simd level, bool two) {
  auto decoder = std::make_shared<lade_planes>(level, two);
  return {std::move(figure), [decoder](const files& all) { (*decoder)(all); }};
}

static double thread_us() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

static void compare_planes(const std::string& kind, const files& all, std::size_t rounds,
                           bool all_levels) {
  auto turbo = std::make_shared<turbo_planes>();
  std::vector<planes_contestant> contestants;
  contestants.push_back({"libjpeg_turbo", [turbo](const files& each) { (*turbo)(each); }});
  contestants.push_back(by_lade("one", best_simd(), false));
  contestants.push_back(by_lade("two", best_simd(), true));
  if (all_levels && best_simd() > simd::avx2)
    contestants.push_back(by_lade("two_avx2", simd::avx2, true));
  if (all_levels) contestants.push_back(by_lade("two_plain", simd::plain, true));
  for (std::size_t round = 0; round <= rounds; ++round)
    for (auto& each : contestants) {
      const double begin = thread_us();
      each.run(all);
      if (round == 0) continue;  // warms up
      each.us.push_back((thread_us() - begin) / static_cast<double>(all.size()));
      each.ratios.push_back(contestants[0].us.back() / each.us.back());
    }
  for (const auto& each : contestants)
    std::printf(
        "{\"benchmark\": \"planes\", \"figure\": \"%s_%s\", \"cpu_us_per_image\": %.1f, "
        "\"ratio\": %.3f}\n",
        kind.c_str(), each.figure.c_str(), bench::median(each.us), bench::median(each.ratios));
}

}  // namespace lade::media

int main(int argc, char** argv) {
  using namespace lade::media;
  bench::options given(argc, argv, "JPEG to planes, beside libjpeg-turbo.");
  const auto rounds = given.number("rounds", 7, "of each kind of image");
  given.done();
  const auto photos = photos_of(375, 500);
  const auto at_75 = [](const auto& pixels) { return write_jpeg(pixels, {.quality = 75}); };
  const auto own = [](const auto& pixels) {
    return write_jpeg(pixels, {.quality = 75, .optimised = true});
  };
  compare_planes("corpus", jpegs_of(photos, write_of_size), rounds, true);
  compare_planes("quality_75", jpegs_of(photos, at_75), rounds, false);
  compare_planes("own_tables", jpegs_of(photos, own), rounds, false);
  compare_planes("thumbnails", jpegs_of(photos_of(100, 100), at_75), rounds, false);
  auto large = photos_of(3000, 4000);
  large.resize(4);
  compare_planes("4000x3000", jpegs_of(large, at_75), rounds, false);
}
