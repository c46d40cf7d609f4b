// Runs in which an allocation fails: each ends with all its items, or with an error that says so.

#include <lade/io/file.hpp>
#include <lade/lade.hpp>
#include <lade/media/image.hpp>

#include "../support/live_allocations.hpp"
#include "../support/temp_dir.hpp"
#include "jpeg_writer.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace lade::media {

static std::vector<sample> write_images(const testing_support::temp_dir& directory,
                                        std::size_t count) {
  auto jpeg = write_jpeg(tensor(element_type::u8, {16, 16, 3}));
  std::string_view bytes(reinterpret_cast<const char*>(jpeg.data()), jpeg.size());
  std::vector<sample> files;
  for (std::size_t i = 0; i < count; ++i)
    files.emplace_back(directory.write(std::to_string(i) + ".jpg", bytes));
  return files;
}

// What a run of the images has ended with: "8 images", or the text of its error.
static std::string outcome_of(runtime& where, const pipeline<sample_batch>& images) try {
  std::size_t count = 0;
  for (auto& batch : where.run(images, {.epoch = 0})) count += batch.size();
  return std::to_string(count) + " images";
} catch (const std::exception& failure) {
  return failure.what();
}

static bool says_so(const std::string& outcome) {
  return outcome == "8 images" || outcome.find("bad_alloc") != std::string::npos ||
         outcome.find("memory") != std::string::npos;
}

TEST(OutOfMemory, EveryAllocationOfARunMayFail) {
  testing_support::temp_dir directory;
  runtime one({.threads = 1, .reactors = 1});
  auto images = from(write_images(directory, 8)) | map(io::read, {.concurrency = 2}) |
                batch_into(decode_image({.width = 8, .height = 8}), {.size = 4});
  ASSERT_EQ(outcome_of(one, images), "8 images");
  bool has_failed = true;
  for (std::uint64_t n = 0; has_failed; ++n) {
    std::string outcome;
    {
      test::failing_allocation nth(n);
      outcome = outcome_of(one, images);
      has_failed = nth.has_failed();
    }
    EXPECT_TRUE(says_so(outcome)) << "allocation " << n << ": " << outcome;
  }
  EXPECT_EQ(outcome_of(one, images), "8 images");
}

}  // namespace lade::media
