#include <lade/checksum.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "../support/seed.hpp"

namespace lade::checksum_test {

static std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// A CRC bit by bit, as its definition says.
template <class T>
static T slow_crc(T polynomial, std::span<const std::byte> bytes) {
  T crc = ~T{0};
  for (auto byte : bytes) {
    crc ^= static_cast<T>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? polynomial : 0);
  }
  return ~crc;
}

TEST(Checksum, MatchesTheSpecificationsForKnownBytes) {
  EXPECT_EQ(crc32c(bytes_of("123456789")).value(), 0xe3069283u);
  EXPECT_EQ(crc64nvme(bytes_of("123456789")).value(), 0xae8b14860a799888u);
  EXPECT_EQ(crc32c().value(), 0u);
  EXPECT_EQ(crc64nvme().value(), 0u);
  // RFC 3720, B.4.
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))).value(), 0x8a9136aau);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xff'))).value(), 0x62a8ab43u);
}

TEST(Checksum, MatchesTheDefinitionForRandomPieces) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> bytes(random() % 1000);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    crc32c narrow;
    crc64nvme wide;
    for (std::span<const std::byte> rest = bytes; !rest.empty();) {
      auto piece = rest.first(std::min<std::size_t>(rest.size(), 1 + random() % 100));
      narrow.update(piece);
      wide.update(piece);
      rest = rest.subspan(piece.size());
    }
    ASSERT_EQ(narrow.value(), slow_crc<std::uint32_t>(0x82f63b78, bytes));
    ASSERT_EQ(wide.value(), slow_crc<std::uint64_t>(0x9a6c9329ac4bc9b5, bytes));
  }
}

TEST(Checksum, ProcessorInstructionsMatchTheTables) {
  if (!detail::has_sse42()) GTEST_SKIP() << "no SSE4.2";
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(50'000);  // three parts of 4096 bytes, of 256 bytes, and the rest
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  for (int round = 0; round < 1000; ++round) {
    auto begin = random() % (round % 2 ? bytes.size() : 100);
    auto part = std::span(bytes).subspan(begin, random() % (bytes.size() - begin));
    auto state = static_cast<std::uint32_t>(random());
    ASSERT_EQ(detail::crc32c_by_sse42(state, part), detail::crc32c_by_tables(state, part));
  }
}

}  // namespace lade::checksum_test
