// CPU time of decoding one 500 x 375 photo of 110 KB, against libjpeg-turbo alone. Prints a line
// of JSON per figure: medians over rounds in which the contestants take turns.

#include "../../media/resizer.hpp"
#include "jpeg_corpus.hpp"

#include <lade/media/image.hpp>

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <jpeglib.h>

namespace lade::media {

static constexpr int batch_size = 64;

// What a decoder costs at least: all pixels as RGB into memory that is there.
class bare_decoder {
 public:
  bare_decoder() {
    jpeg_.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&jpeg_);
  }
  ~bare_decoder() { jpeg_destroy_decompress(&jpeg_); }

  void operator()(const sample& in) {
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(in.data().data()),
                 in.data().size());
    jpeg_read_header(&jpeg_, TRUE);
    jpeg_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&jpeg_);
    const std::size_t stride = jpeg_.output_width * 3;
    pixels_.resize(stride * jpeg_.output_height);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW row = pixels_.data() + jpeg_.output_scanline * stride;
      jpeg_read_scanlines(&jpeg_, &row, 1);
    }
    jpeg_finish_decompress(&jpeg_);
  }

 private:
  jpeg_error_mgr errors_;
  jpeg_decompress_struct jpeg_;
  std::vector<std::uint8_t> pixels_;
};

static double cpu_ms() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

struct contestant {
  std::string figure;
  double limit;  // of the ratio to the first contestant; 0 for none
  std::function<void(std::size_t, const sample&)> run;
  std::vector<double> ms{};
  std::vector<double> ratios{};
};

static double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

static contestant decoding(std::string figure, double limit, const image_options& options) {
  const decode_image decode(options);
  const tensor batch(options.type, decode.spec().shape.prepend(batch_size));
  return {std::move(figure), limit, [decode, batch](std::size_t i, const sample& in) {
            decode(in, batch[static_cast<std::int64_t>(i % batch_size)], random(i));
          }};
}

static contestant resizing(std::string figure, simd level) {
  tensor pixels(element_type::u8, {375, 500, 3});
  tensor out(element_type::u8, {224, 224, 3});
  std::fill_n(pixels.data<std::uint8_t>(), pixels.spec().bytes(), std::uint8_t{99});
  auto engine = std::make_shared<resizer>(level);
  auto writer = std::make_shared<pixel_writer>(level);
  return {std::move(figure), 0, [=](std::size_t, const sample&) {
            engine->plan({{0, 500, 0, 500}, {0, 375, 0, 375}, 224, 224});
            writer->begin({.data = out.bytes(), .width = 224, .height = 224}, {});
            memory_rows rows(pixels.data<std::uint8_t>(), 1500);
            engine->run(rows, 3, *writer);
          }};
}

static std::vector<contestant> contestants() {
  const image_options train{.width = 224,
                            .height = 224,
                            .fit = image_fit::random_crop,
                            .layout = image_layout::chw,
                            .type = element_type::f32,
                            .mean = imagenet_mean,
                            .stddev = imagenet_stddev};
  const image_options val{.width = 224, .height = 224, .fit = image_fit::centre_crop};
  image_options train_fast = train;
  image_options val_fast = val;
  train_fast.fast = val_fast.fast = true;
  auto bare = std::make_shared<bare_decoder>();
  std::vector<contestant> all;
  all.push_back({"libjpeg-turbo", 0, [bare](std::size_t, const sample& in) { (*bare)(in); }});
  all.push_back(decoding("train", 1.05, train));
  all.push_back(decoding("val", 1.35, val));
  all.push_back(decoding("train_fast", 0, train_fast));
  all.push_back(decoding("val_fast", 1.15, val_fast));
  all.push_back(decoding("stretch", 0, {.width = 224, .height = 224}));
  all.push_back(decoding("stretch_fast", 0, {.width = 224, .height = 224, .fast = true}));
  if (best_simd() >= simd::avx512) all.push_back(resizing("resize_avx512", simd::avx512));
  if (best_simd() >= simd::avx2) all.push_back(resizing("resize_avx2", simd::avx2));
  all.push_back(resizing("resize_plain", simd::plain));
  return all;
}

static void run_round(std::vector<contestant>& all, const std::vector<sample>& corpus,
                      std::size_t round) {
  for (auto& one : all) {
    const double begin = cpu_ms();
    for (std::size_t i = 0; i < corpus.size(); ++i) one.run(round * corpus.size() + i, corpus[i]);
    one.ms.push_back((cpu_ms() - begin) / static_cast<double>(corpus.size()));
    one.ratios.push_back(one.ms.back() / all[0].ms.back());
  }
}

// False when a figure is above its limit.
static bool print(const std::vector<contestant>& all) {
  bool good = true;
  for (const auto& one : all) {
    const double ratio = median(one.ratios);
    std::printf(
        "{\"benchmark\": \"decode\", \"figure\": \"%s\", \"cpu_ms_per_image\": %.4f, "
        "\"ratio\": %.3f, \"limit\": %.2f}\n",
        one.figure.c_str(), median(one.ms), ratio, one.limit);
    good = good && (one.limit == 0 || ratio <= one.limit);
  }
  return good;
}

}  // namespace lade::media

// decode_bench [rounds]
int main(int argc, char** argv) {
  using namespace lade::media;
  const auto rounds = static_cast<std::size_t>(argc > 1 ? std::atoi(argv[1]) : 15);
  const auto corpus = jpegs_of(photos_of(375, 500), write_of_size);
  auto all = contestants();
  run_round(all, corpus, 0);
  for (auto& one : all) one.ms.clear(), one.ratios.clear();
  for (std::size_t round = 1; round <= rounds; ++round) run_round(all, corpus, round);
  return print(all) ? 0 : 1;
}
