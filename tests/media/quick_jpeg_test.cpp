// JPEGs that lade decodes itself, against the same files as libjpeg-turbo decodes them.

#include "../support/seed.hpp"
#include "jpeg_writer.hpp"

#include <lade/batch.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/hooks.hpp>
#include <lade/map.hpp>
#include <lade/media/image.hpp>
#include <lade/media/resize.hpp>
#include <lade/random.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/thread_pool.hpp>
#include <lade/waiting_items.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace lade::media::quick_jpeg_test {

// Soft shapes and noise.
static tensor pixels_of(random& draw, std::int64_t height, std::int64_t width, int channels) {
  tensor small(element_type::u8, {5, 7, channels});
  for (std::size_t i = 0; i < small.spec().bytes(); ++i)
    small.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(draw.below(256));
  tensor pixels(element_type::u8, {height, width, channels});
  resize(small, pixels);
  for (std::size_t i = 0; i < pixels.spec().bytes(); i += 1 + draw.below(16))
    pixels.data<std::uint8_t>()[i] ^= static_cast<std::uint8_t>(draw.below(32));
  return pixels;
}

static jpeg_kind any_kind(random& draw, int channels) {
  constexpr int samplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}};
  const auto& sampling = samplings[draw.below(5)];
  return {.quality = 1 + static_cast<int>(draw.below(100)),
          .sampling_x = sampling[0],
          .sampling_y = sampling[1],
          .restart_rows = static_cast<unsigned>(draw.below(3)),
          .optimised = draw.below(2) == 0,
          .from = channels == 1 ? JCS_GRAYSCALE : JCS_RGB,
          .as = channels == 1        ? JCS_GRAYSCALE
                : draw.below(8) == 0 ? JCS_RGB
                                     : JCS_YCbCr};
}

// A byte that fills up before the first marker means nothing. lade leaves such files to
// libjpeg-turbo.
static buffer for_libjpeg(const buffer& file) {
  buffer filled(file.size() + 1);
  std::memcpy(filled.data(), file.data(), 2);
  filled.data()[2] = std::byte{0xff};
  std::memcpy(filled.data() + 3, file.data() + 2, file.size() - 2);
  return filled;
}

static image_options any_options(random& draw) {
  const std::uint64_t most = draw.below(3) == 0 ? 12 : 120;
  const auto size = [&] { return 1 + static_cast<int>(draw.below(most)); };
  image_options options{.width = size(), .height = size()};
  options.fit = static_cast<image_fit>(draw.below(3));
  if (draw.below(4) == 0) options = {};
  options.colour = static_cast<image_colour>(draw.below(3));
  options.fast = draw.below(2) == 0;
  return options;
}

TEST(QuickJpeg, MakesThePixelsOfLibjpegTurboInEveryWayOfDecoding) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  std::uint64_t refused = 0;  // as too unusual, though of a kind that lade decodes
  for (int round = 0; round < 400; ++round) {
    const auto most = draw.below(4) == 0 ? 900 : 200;
    const auto height = 1 + static_cast<std::int64_t>(draw.below(std::uint64_t(most)));
    const auto width = 1 + static_cast<std::int64_t>(draw.below(std::uint64_t(most)));
    const int channels = draw.below(4) == 0 ? 1 : 3;
    const auto kind = any_kind(draw, channels);
    const auto file = write_jpeg(pixels_of(draw, height, width, channels), kind);
    const auto options = any_options(draw);
    const decode_image decode(options);
    const random crop(draw());
    const auto ours = decode(sample("a.jpg").with_data(file), crop);
    const auto by_libjpeg = decode.jpegs_by_libjpeg();
    if (kind.as != JCS_RGB || options.colour != image_colour::grey) refused += by_libjpeg;
    const auto theirs = decode(sample("b.jpg").with_data(for_libjpeg(file)), crop);
    EXPECT_EQ(decode.jpegs_by_libjpeg(), by_libjpeg + 1);
    ASSERT_EQ(ours.spec(), theirs.spec());
    EXPECT_EQ(std::memcmp(ours.bytes(), theirs.bytes(), ours.spec().bytes()), 0)
        << round << ": " << width << " x " << height << ", sampling " << kind.sampling_x
        << kind.sampling_y << ", quality " << kind.quality << ", channels " << channels << ", as "
        << kind.as << ", to " << options.width << " x " << options.height << ", fit "
        << int(options.fit) << ", colour " << int(options.colour) << ", fast " << options.fast;
  }
  EXPECT_LT(refused, 400 / 20);
}

TEST(QuickJpeg, CountsWhatLibjpegTurboDecodes) {
  tensor pixels(element_type::u8, {40, 50, 3});
  std::memset(pixels.bytes(), 99, pixels.spec().bytes());
  const auto count = [](const buffer& file, const image_options& options = {}) {
    const decode_image decode(options);
    const auto copy = decode;
    copy(sample("a.jpg").with_data(file));
    return decode.jpegs_by_libjpeg();
  };
  const auto usual = write_jpeg(pixels);
  EXPECT_EQ(count(usual), 0U);
  EXPECT_EQ(count(usual, {.width = 4, .height = 3, .fast = true}), 0U);
  EXPECT_EQ(count(usual, {.colour = image_colour::grey}), 0U);
  EXPECT_EQ(count(write_jpeg(pixels, {.progressive = true})), 1U);
  const auto cut = usual.slice(0, usual.size() - 20);
  EXPECT_EQ(count(cut, {.strict = false}), 1U);
  const decode_image strict;
  EXPECT_THROW(strict(sample("a.jpg").with_data(cut)), error);
  EXPECT_EQ(strict.jpegs_by_libjpeg(), 1U);
}

// While a stage's images are decoded, on the same thread.
struct decoding_hooks final : run_hooks {
  explicit decoding_hooks(sample of) : image(std::move(of)) {}
  void enter_item(const item_call&) override { decode(image); }
  void leave_item(const item_call&, const std::exception_ptr&) override { decode(image); }

  decode_image decode;
  sample image;
};

TEST(QuickJpeg, HooksMayDecodeImagesBetweenThoseOfTheStage) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 1});
  std::vector<sample> files;
  for (int i = 0; i < 12; ++i)
    files.push_back(sample(std::to_string(i)).with_data(write_jpeg(pixels_of(draw, 150, 200, 3))));
  for (const std::int64_t side : {120, 1500}) {  // the decoders of large ones are not kept
    decoding_hooks hooks(sample("hook").with_data(write_jpeg(pixels_of(draw, side, side, 3))));
    auto items =
        runtime.run(from(files) | map(decode_image(), {.concurrency = 2}), {.hooks = &hooks});
    std::size_t next = 0;
    for (auto& each : items) {
      const auto alone = decode_image()(files[next++]);
      ASSERT_EQ(each.spec(), alone.spec());
      EXPECT_EQ(std::memcmp(each.bytes(), alone.bytes(), alone.spec().bytes()), 0) << next;
    }
    EXPECT_EQ(next, files.size());
  }
}

// Files of every kind that a folder may have: also damaged ones, ones for libjpeg-turbo, ones that
// are no images, and large ones.
static buffer any_file(random& draw) {
  const std::uint64_t most = draw.below(40) == 0 ? 1600 : 250;
  const auto size = [&] { return 1 + static_cast<std::int64_t>(draw.below(most)); };
  const int channels = draw.below(5) == 0 ? 1 : 3;
  const auto height = size();
  auto file = write_jpeg(pixels_of(draw, height, size(), channels), any_kind(draw, channels));
  const auto what = draw.below(12);
  if (what == 0) return for_libjpeg(file);
  if (what == 1) file.data()[file.size() / 2 + draw.below(file.size() / 2)] ^= std::byte{0x55};
  if (what == 2) file.data()[0] = std::byte{'x'};
  return file;
}

// The largest number of images that a worker had in flight.
struct most_in_flight : run_hooks {
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
  void enter_item(const item_call&) override { most = std::max(most.load(), ++now); }
  void leave_item(const item_call&, const std::exception_ptr&) override { --now; }
};

TEST(QuickJpeg, TwoImagesAtATimeBecomeWhatEachBecomesAlone) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  thread_pool one({.threads = 1});
  runtime runtime({.threads = 1});
  most_in_flight hooks;
  for (int round = 0; round < 12; ++round) {
    random draw(seed, round);
    std::vector<sample> files;
    for (int i = 0; i < 60; ++i)
      files.push_back(sample(std::to_string(i), i).with_data(any_file(draw)));
    auto options = any_options(draw);
    options.fit = std::min(options.fit, image_fit::centre_crop);  // the same for every draw
    options.strict = draw.below(2) == 0;
    const decode_image decode(options), decode_alone(options);
    auto items = runtime.run(from(files) | map(decode, {.concurrency = 2,
                                                        .buffer = 8,
                                                        .on_error = on_error::skip,
                                                        .pool = &one,
                                                        .name = "decode"}),
                             {.hooks = &hooks});
    std::vector<tensor> together;
    for (auto& each : items) together.push_back(each);
    std::size_t next = 0;
    std::vector<std::string> failures;
    for (const auto& file : files) {
      try {
        const auto alone = decode_alone(file);
        ASSERT_LT(next, together.size());
        ASSERT_EQ(together[next].spec(), alone.spec()) << file.key();
        EXPECT_EQ(std::memcmp(together[next].bytes(), alone.bytes(), alone.spec().bytes()), 0)
            << file.key();
        ++next;
      } catch (const error& e) {
        failures.emplace_back(e.what());
      }
    }
    EXPECT_EQ(next, together.size());
    std::vector<std::string> of_run;
    for (const auto& each : items.failures()) of_run.push_back(each.what);
    EXPECT_THAT(of_run, testing::UnorderedElementsAreArray(failures));
    EXPECT_EQ(decode.warnings(), decode_alone.warnings());
  }
  EXPECT_EQ(hooks.most, 3);  // two that are decoded, and one that is complete
}

// Two images wait, and then taking one fails.
struct failing_call final : detail::several_call {
  std::size_t next = 0;
  std::vector<std::size_t> finished;

  std::size_t take() override {
    if (next == 2) throw std::runtime_error("no more");
    return next++;
  }
  random draw(std::size_t) const override { return random(1); }
  void finish(std::size_t slot) noexcept override { finished.push_back(slot); }
  void fail(std::size_t, const std::exception_ptr&) noexcept override {}
};

TEST(QuickJpeg, ImagesInFlightFinishIfTheNextCannotStart) {
  random draw(1);
  std::vector<detail::slot_values<sample, tensor>> slots(2);
  const std::int64_t heights[] = {200, 20};  // the second is complete before the first
  for (std::size_t i = 0; i < slots.size(); ++i)
    slots[i].in = sample("a.jpg").with_data(write_jpeg(pixels_of(draw, heights[i], 100, 3)));
  failing_call call;
  waiting_items<sample, tensor> waiting(slots, call);
  EXPECT_THROW(decode_image()(waiting), std::runtime_error);
  EXPECT_EQ(call.finished, (std::vector<std::size_t>{0, 1}));
  EXPECT_TRUE(slots[0].out && slots[1].out);
}

TEST(QuickJpeg, TwoImagesAtATimeAreWrittenWhereEachBelongs) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 2});
  std::vector<sample> files;
  for (int i = 0; i < 50; ++i)
    files.push_back(sample(std::to_string(i), i).with_data(any_file(draw)));
  for (const auto fit : {image_fit::stretch, image_fit::random_crop}) {
    const decode_image decode({.width = 40, .height = 30, .fit = fit, .strict = false});
    std::array<std::vector<std::string>, 2> pixels;
    for (const bool together : {false, true}) {
      const auto alone = [&](const sample& in, random crop) { return decode(in, crop); };
      const map_options one_by_one{.concurrency = 2, .on_error = on_error::skip};
      const batch_into_options batches{
          .size = 7, .concurrency = 2, .on_error = on_error::skip, .name = "map"};
      auto note = [&](const tensor& image) {
        pixels[together].emplace_back(reinterpret_cast<const char*>(image.bytes()),
                                      image.spec().bytes());
      };
      if (!together) {
        auto images = runtime.run(from(files) | map(alone, one_by_one), {.seed = 5});
        for (auto& image : images) note(image);
      } else {
        auto all = runtime.run(from(files) | batch_into(decode, batches), {.seed = 5});
        for (auto& batch : all)
          for (std::size_t i = 0; i < batch.size(); ++i)
            note(batch.tensor()[static_cast<std::int64_t>(i)]);
      }
    }
    EXPECT_EQ(pixels[0], pixels[1]);
    EXPECT_GT(pixels[0].size(), 30u);
  }
}

// Whatever libjpeg makes of damaged data, is the result.
TEST(QuickJpeg, LeavesDamagedImagesToLibjpegTurboHoweverLargeTheyAre) {
  random draw(1);
  for (const std::int64_t side : {40, 1500}) {
    auto file = write_jpeg(pixels_of(draw, side, side, 3));
    for (std::size_t at = file.size() - 200; at < file.size() - 100; ++at)
      file.data()[at] = std::byte{0x55};
    const decode_image decode({.strict = false}), strict;
    const auto ours = decode(sample("a.jpg").with_data(file));
    const auto theirs = decode(sample("b.jpg").with_data(for_libjpeg(file)));
    EXPECT_EQ(std::memcmp(ours.bytes(), theirs.bytes(), ours.spec().bytes()), 0) << side;
    EXPECT_THROW(strict(sample("a.jpg").with_data(file)), error) << side;
  }
}

}  // namespace lade::media::quick_jpeg_test
