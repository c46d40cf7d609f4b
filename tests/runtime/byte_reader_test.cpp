#include <lade/byte_reader.hpp>
#include <lade/error.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../support/seed.hpp"

namespace lade::byte_reader_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

static buffer bytes_of(std::string_view text) {
  buffer bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

static std::shared_ptr<const byte_reader> reader_of(std::string_view text) {
  return std::make_shared<const memory_reader>(bytes_of(text), "text");
}

// The same, as if it were in a file.
class text_file final : public byte_reader {
 public:
  explicit text_file(std::string_view text) : content_(bytes_of(text), "text") {}
  const std::string& name() const noexcept override { return content_.name(); }
  std::uint64_t size() const override { return content_.size(); }
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    return content_.read_at(into, offset);
  }
  using byte_reader::read_at;

 private:
  memory_reader content_;
};

static std::shared_ptr<const byte_reader> file_of(std::string_view text) {
  return std::make_shared<const text_file>(text);
}

static std::string read_into(const byte_reader& from, std::size_t bytes, std::uint64_t offset) {
  std::string into(bytes, '?');
  into.resize(sync_wait(from.read_at(std::as_writable_bytes(std::span(into)), offset)));
  return into;
}

// The text in chunks of these sizes, as a stream.
static async_generator<buffer> chunks(std::string text, std::vector<std::size_t> sizes) {
  std::size_t begin = 0;
  for (auto size : sizes) {
    auto chunk = bytes_of(std::string_view(text).substr(begin, size));
    begin += size;
    co_yield chunk;
  }
}

TEST(ByteReader, OverMemoryReadsUpToTheEnd) {
  auto digits = reader_of("0123456789");
  EXPECT_EQ(digits->size(), 10u);
  EXPECT_EQ(read_into(*digits, 4, 3), "3456");
  EXPECT_EQ(read_into(*digits, 4, 8), "89");
  EXPECT_EQ(read_into(*digits, 4, 10), "");
  EXPECT_EQ(read_into(*digits, 4, ~std::uint64_t{0}), "");
}

TEST(ByteReader, OverMemoryReturnsViews) {
  auto content = bytes_of("0123456789");
  memory_reader digits(content);
  auto part = sync_wait(digits.read_at(3, 4));
  EXPECT_EQ(part.data(), content.data() + 3);
  EXPECT_EQ(part.text(), "3456");
}

TEST(ByteReader, ARangeThatIsNotAllThereIsRefusedByName) {
  auto digits = reader_of("0123456789");
  EXPECT_THAT([&] { (void)sync_wait(digits->read_at(8, 4)); },
              ThrowsMessage<error>("read 4 bytes at 8 of text: it has 10 bytes"));
  EXPECT_THROW((void)sync_wait(digits->read_at(~std::uint64_t{0}, 2)), error);
  EXPECT_EQ(sync_wait(digits->read_at(10, 0)).size(), 0u);
}

TEST(ByteReader, OverAPartReadsOnlyThat) {
  part_reader middle(reader_of("0123456789"), 3, 4, "text/middle");
  EXPECT_EQ(middle.name(), "text/middle");
  EXPECT_EQ(middle.size(), 4u);
  EXPECT_EQ(read_into(middle, 10, 1), "456");
  EXPECT_EQ(read_into(middle, 1, 4), "");
  EXPECT_EQ(sync_wait(middle.read_at(1, 2)).text(), "45");
  EXPECT_THROW((void)sync_wait(middle.read_at(1, 4)), error);
}

TEST(ByteReader, APartThatIsNotInsideIsRefused) {
  EXPECT_THAT([] { part_reader(reader_of("0123456789"), 8, 4, "text/end"); },
              ThrowsMessage<error>("open text/end: 4 bytes at 8 of 10"));
}

static task<std::vector<std::string>> collect(async_generator<buffer> from) {
  std::vector<std::string> texts;
  while (auto* chunk = co_await from.next()) texts.emplace_back(chunk->text());
  co_return texts;
}

TEST(Stream, YieldsAReaderInChunks) {
  EXPECT_THAT(sync_wait(collect(stream(reader_of("0123456789"), {.chunk_bytes = 4}))),
              testing::ElementsAre("0123", "4567", "89"));
  EXPECT_THAT(sync_wait(collect(stream(reader_of("0123456789"), {.offset = 8, .chunk_bytes = 4}))),
              testing::ElementsAre("89"));
  EXPECT_THAT(sync_wait(collect(stream(reader_of("")))), testing::IsEmpty());
}

TEST(Stream, OptionsThatCannotWorkAreRefused) {
  EXPECT_THAT([] { (void)stream(reader_of("01"), {.chunk_bytes = 0}); },
              ThrowsMessage<error>(HasSubstr("stream text: chunk_bytes")));
  EXPECT_THAT([] { (void)stream(reader_of("01"), {.offset = 3}); },
              ThrowsMessage<error>("stream text: offset 3 is behind its end at 2"));
}

TEST(StreamReader, PiecesInOneChunkAreViewsAndOthersCopies) {
  stream_reader from(chunks("0123456789", {6, 4}), "digits");
  auto first = sync_wait(from.read(2, "a head"));
  auto second = sync_wait(from.read(2, "a head"));
  EXPECT_EQ(first.data() + 2, second.data());
  EXPECT_EQ(sync_wait(from.read(4, "a body")).text(), "4567");
  EXPECT_EQ(from.position(), 8u);
  EXPECT_FALSE(sync_wait(from.at_end()));
  EXPECT_EQ(sync_wait(from.read_some(100)).text(), "89");
  EXPECT_TRUE(sync_wait(from.at_end()));
  EXPECT_TRUE(sync_wait(from.read_some(100)).empty());
}

TEST(StreamReader, AnEarlyEndNamesStreamPieceAndPosition) {
  stream_reader from(chunks("0123456789", {6, 4}), "digits");
  sync_wait(from.skip(8, "a head"));
  EXPECT_THAT([&] { (void)sync_wait(from.read(5, "a body")); },
              ThrowsMessage<error>("read a body of digits: it ends at byte 10, 3 bytes too early"));
  EXPECT_THAT([&] { sync_wait(from.skip(5, "a tail")); },
              ThrowsMessage<error>("read a tail of digits: it ends at byte 10, 5 bytes too early"));
}

TEST(StreamReader, ASizeThatIsNotThereIsNotAllocated) {
  stream_reader from(chunks("0123456789", {6, 4}), "digits");
  EXPECT_THROW((void)sync_wait(from.read(std::size_t{1} << 60, "a body")), error);
  stream_reader of_reader(file_of("0123456789"), 4);
  EXPECT_THROW((void)sync_wait(of_reader.read(std::size_t{1} << 60, "a body")), error);
}

TEST(StreamReader, OfAReaderSaysTheSameOfAnEarlyEnd) {
  stream_reader reading(file_of("0123456789"), 4), skipping(file_of("0123456789"), 4);
  EXPECT_EQ(sync_wait(reading.read(3, "a head")).text(), "012");
  EXPECT_THAT([&] { (void)sync_wait(reading.read(9, "a body")); },
              ThrowsMessage<error>("read a body of text: it ends at byte 10, 2 bytes too early"));
  EXPECT_TRUE(sync_wait(reading.at_end()));
  EXPECT_THAT([&] { sync_wait(skipping.skip(12, "a tail")); },
              ThrowsMessage<error>("read a tail of text: it ends at byte 10, 2 bytes too early"));
  EXPECT_THAT([] { stream_reader(file_of("01"), 0); },
              ThrowsMessage<error>(HasSubstr("read text: chunk_bytes")));
}

TEST(StreamReader, PiecesOfAReaderInMemoryAreViews) {
  auto content = bytes_of("0123456789");
  auto part = std::make_shared<const part_reader>(
      std::make_shared<const memory_reader>(content, "text"), 2, 7, "text/middle");
  stream_reader from(part, 4);
  EXPECT_EQ(sync_wait(from.read(5, "a body")).data(), content.data() + 2);
  EXPECT_EQ(sync_wait(from.read_some(9)).data(), content.data() + 7);
}

TEST(StreamReader, ReadsTheSameBytesForAnyChunkSize) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::string text(100'000, '\0');
  for (auto& c : text) c = static_cast<char>(random());
  for (int round = 0; round < 50; ++round) {
    std::vector<std::size_t> sizes;
    for (std::size_t left = text.size(); left > 0; left -= sizes.back())
      sizes.push_back(std::min<std::size_t>(left, random() % 5000));
    auto chunk_bytes = 1 + random() % 5000;
    auto from = round % 2 == 0 ? stream_reader(chunks(text, sizes), "text")
                               : stream_reader(file_of(text), chunk_bytes);
    std::string got;
    while (got.size() < text.size()) {
      auto bytes = std::min<std::size_t>(text.size() - got.size(), random() % 9000);
      if (random() % 2 == 0) {
        got += sync_wait(from.read(bytes, "a piece")).text();
      } else {
        sync_wait(from.skip(bytes, "a piece"));
        got += text.substr(got.size(), bytes);
      }
    }
    EXPECT_TRUE(got == text);
    EXPECT_TRUE(sync_wait(from.at_end()));
  }
}

}  // namespace lade::byte_reader_test
