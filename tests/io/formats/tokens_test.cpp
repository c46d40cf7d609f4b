#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/tokens.hpp>
#include <lade/io/memory_cache.hpp>
#include <lade/io/store.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../../io/formats/megatron_index.hpp"
#include "../../support/counted_store.hpp"
#include "../../support/reactors.hpp"
#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"
#include "bytes.hpp"

namespace lade::io::tokens_test {

using test::little;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;
using testing_support::temp_dir;

template <class T>
static std::string tokens_up_to(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += little(static_cast<T>(i));
  return bytes;
}

template <class T = std::uint16_t>
static std::vector<T> values_of(const tensor& tokens) {
  return {tokens.data<T>(), tokens.data<T>() + tokens.shape()[0]};
}

static std::vector<std::vector<std::uint16_t>> all_of(const token_windows& windows) {
  std::vector<std::vector<std::uint16_t>> all;
  for (std::uint64_t i = 0; i < windows.size(); ++i) all.push_back(values_of(windows(i)));
  return all;
}

// An index of sequences of these lengths, whose tokens have so many bytes.
static std::string index_of(const std::vector<int>& lengths, const std::vector<int>& documents,
                            unsigned code = 8, std::size_t token_bytes = 2) {
  auto index = std::string("MMIDIDX\0\0", 9) + little<std::uint64_t>(1) +
               little(static_cast<std::uint8_t>(code)) + little<std::uint64_t>(lengths.size()) +
               little<std::uint64_t>(documents.size());
  for (auto length : lengths) index += little<std::int32_t>(length);
  std::int64_t begin = 0;
  for (auto length : lengths) {
    index += little<std::int64_t>(begin);
    begin += static_cast<std::int64_t>(token_bytes) * length;
  }
  for (auto document : documents) index += little<std::int64_t>(document);
  return index;
}

// Documents of 5, 0, 2 + 1 and 4 tokens.
static token_file four_documents(const temp_dir& dir) {
  dir.write("four.bin", tokens_up_to<std::uint16_t>(12));
  dir.write("four.idx", index_of({5, 2, 1, 4}, {0, 1, 1, 3, 4}));
  return token_file::open_megatron(dir / "four");
}

TEST(TokenFile, OfPlainIntegersIsMapped) {
  temp_dir dir;
  auto wide =
      token_file::open(dir.write("a.bin", tokens_up_to<std::uint32_t>(9)), element_type::u32);
  EXPECT_EQ(wide.size(), 9u);
  EXPECT_EQ(wide.documents(), 1u);
  EXPECT_EQ(wide.document_begin(1), 9u);
  EXPECT_THAT(values_of<std::uint32_t>(wide.tokens(7, 2)), ElementsAre(7, 8));
  EXPECT_EQ(wide.tokens(7, 2).bytes() - wide.tokens(0, 1).bytes(), 28);
  auto path = wide.name();
  EXPECT_THAT([&] { (void)wide.tokens(8, 2); },
              ThrowsMessage<error>("read " + path + ": 2 tokens at 8; it has 9"));
  EXPECT_THROW((void)wide.tokens(~std::uint64_t{0}, 2), error);
  auto empty = token_file::open(dir.write("b.bin", ""), element_type::u16);
  EXPECT_EQ(empty.size(), 0u);
  EXPECT_EQ(empty.tokens(0, 0).shape(), dimensions({0}));
}

TEST(TokenFile, ThatCannotBeOneIsRefused) {
  temp_dir dir;
  auto odd = dir.write("a.bin", "abc");
  EXPECT_THAT([&] { (void)token_file::open(odd, element_type::u16); },
              ThrowsMessage<error>("open " + odd + ": its 3 bytes are no whole number of u16"));
  EXPECT_THAT([&] { (void)token_file::open(odd, element_type::f16); },
              ThrowsMessage<error>(HasSubstr("tokens are integers, not f16")));
  EXPECT_THAT([&] { (void)token_file::open(dir / "absent", element_type::u16); },
              ThrowsMessage<error>("open " + (dir / "absent") + ": No such file or directory"));
  EXPECT_THAT([&] { (void)token_file::open(dir.path().string(), element_type::u16); },
              ThrowsMessage<error>(HasSubstr("Is a directory")));
  EXPECT_THROW((void)token_file::open_megatron(dir / "absent"), error);
}

TEST(TokenFile, OfMegatronHasDocuments) {
  temp_dir dir;
  auto file = four_documents(dir);
  EXPECT_EQ(file.type(), element_type::u16);
  EXPECT_EQ(file.documents(), 4u);
  std::vector<std::uint64_t> begins;
  for (std::uint64_t i = 0; i <= 4; ++i) begins.push_back(file.document_begin(i));
  EXPECT_THAT(begins, ElementsAre(0, 5, 5, 8, 12));
}

TEST(MegatronIndex, ThatContradictsItselfIsRefused) {
  auto refusal = [](const std::string& index, std::uint64_t bin_bytes = 24) -> std::string {
    try {
      megatron_index(std::as_bytes(std::span(index)), "a.idx", bin_bytes);
    } catch (const error& refused) {
      return refused.what();
    }
    return "none";
  };
  auto good = index_of({5, 2, 1, 4}, {0, 1, 1, 3, 4});
  EXPECT_EQ(refusal(good), "none");
  EXPECT_EQ(refusal(good + "abcd"), "none");  // modes of the sequences
  EXPECT_THAT(refusal(good + "abc"), HasSubstr("are not the size that 4 sequences and 5 entries"));
  EXPECT_THAT(refusal(good, 26),
              HasSubstr("its sequences end at byte 24 of the .bin, which has 26"));
  EXPECT_THAT(refusal(good, 22), HasSubstr("sequence 3 has 4 tokens, more than the .bin"));
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_NE(refusal(good.substr(0, bytes)), "none");
  auto changed = [&](std::size_t at, const std::string& bytes) {
    auto index = good;
    return refusal(index.replace(at, bytes.size(), bytes));
  };
  EXPECT_THAT(refusal("TNTIDX\0\0"), HasSubstr("too old"));
  EXPECT_THAT(changed(9, little<std::uint64_t>(2)), HasSubstr("its version is 2"));
  EXPECT_THAT(changed(17, "\x07"), HasSubstr("of type 7"));
  EXPECT_THAT(changed(18, little(~std::uint64_t{0})), HasSubstr("are not the size that"));
  EXPECT_THAT(changed(26, little(~std::uint64_t{0} / 8)), HasSubstr("are not the size that"));
  EXPECT_THAT(changed(34, little<std::int32_t>(-1)), HasSubstr("sequence 0 has -1"));
  EXPECT_THAT(changed(34 + 16 + 8, little<std::int64_t>(9)),
              HasSubstr("sequence 1 begins at byte 9"));
  EXPECT_THAT(changed(34 + 48, little<std::int64_t>(1)), HasSubstr("entry 0 of documents is 1"));
  EXPECT_THAT(changed(34 + 48 + 24, little<std::int64_t>(0)),
              HasSubstr("entry 3 of documents is 0"));
  EXPECT_THAT(refusal(index_of({12}, {0, 0})), HasSubstr("0 of 1 sequences"));
  EXPECT_THAT(refusal(index_of({12}, {})), HasSubstr("no entry for documents"));
}

TEST(TokenWindows, AreViewsOfTheFile) {
  temp_dir dir;
  auto file =
      token_file::open(dir.write("a.bin", tokens_up_to<std::uint16_t>(8)), element_type::u16);
  token_windows windows(file, {.length = 3});
  EXPECT_THAT(all_of(windows), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
  EXPECT_EQ(windows(1).bytes() - windows(0).bytes(), 6);
  EXPECT_THAT(
      all_of(token_windows(file, {.length = 4, .stride = 2})),
      ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(2, 3, 4, 5), ElementsAre(4, 5, 6, 7)));
  EXPECT_THAT(all_of(token_windows(file, {.length = 2, .stride = 5})),
              ElementsAre(ElementsAre(0, 1), ElementsAre(5, 6)));
  EXPECT_THAT(all_of(token_windows(file, {.length = 9})), IsEmpty());
  EXPECT_THAT([&] { (void)windows(2); }, ThrowsMessage<error>("read windows of " + file.name() +
                                                              ": there is no window 2 of 2"));
}

TEST(TokenWindows, CanBePadded) {
  temp_dir dir;
  auto file =
      token_file::open(dir.write("a.bin", tokens_up_to<std::uint16_t>(5)), element_type::u16);
  EXPECT_THAT(all_of(token_windows(file, {.length = 3, .pad = true, .padding = 65535})),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 65535)));
  EXPECT_THAT(all_of(token_windows(file, {.length = 3, .stride = 2, .pad = true})),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(2, 3, 4)));
  EXPECT_THAT(all_of(token_windows(file, {.length = 2, .stride = 4, .pad = true})),
              ElementsAre(ElementsAre(0, 1), ElementsAre(4, 0)));
  EXPECT_THAT([&] { token_windows(file, {.length = 3, .pad = true, .padding = -1}); },
              ThrowsMessage<error>(HasSubstr("padding is -1, which no u16 can hold")));
  EXPECT_THROW(token_windows(file, {}), error);
}

TEST(TokenWindows, CanEndWithTheirDocuments) {
  temp_dir dir;
  auto file = four_documents(dir);
  EXPECT_THAT(all_of(token_windows(file, {.length = 2, .cross_documents = false})),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(5, 6),
                          ElementsAre(8, 9), ElementsAre(10, 11)));
  token_windows padded(file, {.length = 3, .cross_documents = false, .pad = true, .padding = 99});
  EXPECT_THAT(all_of(padded),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 99), ElementsAre(5, 6, 7),
                          ElementsAre(8, 9, 10), ElementsAre(11, 99, 99)));
}

TEST(TokenWindows, KnowWhereDocumentsBegin) {
  temp_dir dir;
  token_windows windows(four_documents(dir), {.length = 6});
  EXPECT_THAT(windows.document_begins(0), ElementsAre(5));
  EXPECT_THAT(windows.document_begins(1), ElementsAre(2));
}

// Against a plain loop.
TEST(TokenWindows, CoverRandomDocumentsAsALoopDoes) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    temp_dir dir;
    std::vector<int> lengths(random() % 20);
    for (auto& length : lengths) length = static_cast<int>(random() % 15);
    std::vector<int> documents(lengths.size() + 1);
    std::iota(documents.begin(), documents.end(), 0);
    auto tokens = static_cast<std::size_t>(std::accumulate(lengths.begin(), lengths.end(), 0));
    dir.write("a.bin", tokens_up_to<std::uint16_t>(tokens));
    dir.write("a.idx", index_of(lengths, documents));
    token_window_options options{.length = 1 + random() % 8,
                                 .stride = 1 + random() % 10,
                                 .cross_documents = random() % 2 == 0,
                                 .pad = random() % 2 == 0,
                                 .padding = 7};
    if (options.cross_documents) lengths = {static_cast<int>(tokens)};
    std::vector<std::vector<std::uint16_t>> expected;
    std::size_t begin = 0;
    for (auto length : lengths) {
      auto end = begin + static_cast<std::size_t>(length);
      for (auto first = begin; first < end; first += options.stride) {
        bool is_whole = first + options.length <= end;
        if (!is_whole && !options.pad) break;
        std::vector<std::uint16_t> window(options.length, 7);
        for (std::size_t i = 0; i < options.length && first + i < end; ++i)
          window[i] = static_cast<std::uint16_t>(first + i);
        expected.push_back(window);
        if (first + options.length >= end) break;
      }
      begin = end;
    }
    ASSERT_EQ(all_of(token_windows(token_file::open_megatron(dir / "a"), options)), expected);
  }
}

TEST(TokenWindows, AreASourceByIndex) {
  temp_dir dir;
  auto file =
      token_file::open(dir.write("a.bin", tokens_up_to<std::uint16_t>(100)), element_type::u16);
  token_windows windows(file, {.length = 10});
  runtime runtime({.threads = 1});
  auto source = from(windows);
  std::vector<std::uint16_t> firsts;
  for (auto& window : runtime.run(source | shuffle({.seed = 3})))
    firsts.push_back(values_of(window)[0]);
  std::sort(firsts.begin(), firsts.end());
  EXPECT_THAT(firsts, ElementsAre(0, 10, 20, 30, 40, 50, 60, 70, 80, 90));
  EXPECT_EQ(windows.identity(), "a.bin: 100 u16 in windows of 10 every 10");
}

// Objects that are read by ranges, at "objects://".
class RangedTokens : public testing_support::ReactorTest {
 protected:
  RangedTokens() {
    objects->opens_ranges = true;
    mount("objects://", objects);
  }
  ~RangedTokens() override { unmount("objects://"); }

  // The same files below `dir` and behind URLs.
  void put(const temp_dir& dir, const std::string& name, const std::string& content) {
    dir.write(name, content);
    objects->put("objects://b/" + name, content);
  }

  // An index of four documents as an object, and its tokens with this tag.
  void put_four(const std::string& tag) {
    objects->put("objects://b/a.bin", tokens_up_to<std::uint16_t>(12), tag);
    objects->put("objects://b/a.idx", index_of({5, 2, 1, 4}, {0, 1, 1, 3, 4}));
  }

  std::shared_ptr<test::counted_store> objects = std::make_shared<test::counted_store>();
};
INSTANTIATE_TEST_SUITE_P(Both, RangedTokens,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);

TEST_P(RangedTokens, EachWindowIsOneRangedRead) {
  runtime runtime(options());
  put_four("v1");
  auto file = sync_wait(runtime, open_megatron("objects://b/a"));
  EXPECT_FALSE(file.is_mapped());
  EXPECT_EQ(file.name(), "objects://b/a.bin");
  EXPECT_EQ(file.documents(), 4u);
  EXPECT_EQ(file.document_begin(3), 8u);
  objects->forget_requests();
  token_windows windows(file, {.length = 3, .cross_documents = false, .pad = true, .padding = 99});
  std::vector<std::vector<std::uint16_t>> all;
  for (std::uint64_t i = 0; i < windows.size(); ++i)
    all.push_back(values_of(sync_wait(runtime, windows.read(i))));
  EXPECT_THAT(all, ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 99), ElementsAre(5, 6, 7),
                               ElementsAre(8, 9, 10), ElementsAre(11, 99, 99)));
  EXPECT_THAT(objects->requests(), ElementsAre("objects://b/a.bin 0+6", "objects://b/a.bin 6+4",
                                               "objects://b/a.bin 10+6", "objects://b/a.bin 16+6",
                                               "objects://b/a.bin 22+2"));
  EXPECT_EQ(sync_wait(runtime, file.read(12, 0)).shape(), dimensions({0}));
  EXPECT_EQ(objects->count(), 5u);
  EXPECT_EQ(windows.identity(),
            "a.bin: 12 u16 in windows of 3 every 3, by document, padded with 99");
}

TEST_P(RangedTokens, TheIdentityDependsOnTheQueryOfTheUrl) {
  temp_dir dir;
  runtime runtime(options());
  auto identity_of = [&](const std::string& query) {
    put(dir, "a.bin" + query, "0123456789");
    auto file = sync_wait(runtime, open_tokens("objects://b/a.bin" + query, element_type::u16));
    return token_windows(file, {.length = 5}).identity();
  };
  EXPECT_THAT(identity_of("?part=c/1"),
              testing::MatchesRegex("a\\.bin\\?[0-9a-f]{16}: 5 u16 in windows of 5 every 5"));
  EXPECT_NE(identity_of("?part=1"), identity_of("?part=2"));
  const std::string signature = "X-Amz-Credential=a&X-Amz-Date=1&X-Amz-Signature=";
  EXPECT_EQ(identity_of("?part=1&" + signature + "b"), identity_of("?part=1"));
  EXPECT_EQ(identity_of("?" + signature + "b"), identity_of(""));
}

// The types of Megatron's codes, by the code.
static constexpr std::pair<unsigned, element_type> token_types[] = {
    {1, element_type::u8},  {2, element_type::i8},  {3, element_type::i16},
    {4, element_type::i32}, {5, element_type::i64}, {8, element_type::u16}};

static std::string_view bytes_of(const tensor& tokens) {
  return {reinterpret_cast<const char*>(tokens.bytes()), tokens.spec().bytes()};
}

TEST_P(RangedTokens, AreThoseOfTheMappedFile) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  runtime runtime(options());
  for (int round = 0; round < 150; ++round) {
    temp_dir dir;
    auto [code, type] = token_types[random() % std::size(token_types)];
    std::vector<int> lengths(random() % 12);
    for (auto& length : lengths) length = static_cast<int>(random() % 12);
    std::vector<int> documents{0};
    for (int i = 1; i <= static_cast<int>(lengths.size()); ++i)
      if (i == static_cast<int>(lengths.size()) || random() % 3 != 0) documents.push_back(i);
    auto tokens = static_cast<std::size_t>(std::accumulate(lengths.begin(), lengths.end(), 0));
    put(dir, "a.bin", test::random_bytes(random, tokens * element_bytes(type)));
    put(dir, "a.idx", index_of(lengths, documents, code, element_bytes(type)));
    bool is_plain = random() % 3 == 0;
    auto mapped =
        is_plain ? token_file::open(dir / "a.bin", type) : token_file::open_megatron(dir / "a");
    auto ranged = sync_wait(runtime, is_plain ? open_tokens("objects://b/a.bin", type)
                                              : open_megatron("objects://b/a"));
    token_window_options options{.length = 1 + random() % 8,
                                 .stride = random() % 10,
                                 .cross_documents = random() % 2 == 0,
                                 .pad = random() % 2 == 0,
                                 .padding = 7};
    token_windows wanted(mapped, options);
    token_windows windows(ranged, options);
    objects->forget_requests();
    ASSERT_EQ(windows.identity(), wanted.identity());
    ASSERT_EQ(windows.size(), wanted.size());
    ASSERT_EQ(ranged.documents(), mapped.documents());
    for (std::uint64_t i = 0; i < windows.size(); ++i) {
      auto window = sync_wait(runtime, windows.read(i));
      ASSERT_EQ(window.spec(), wanted(i).spec());
      ASSERT_EQ(bytes_of(window), bytes_of(wanted(i)));
      ASSERT_EQ(bytes_of(sync_wait(runtime, wanted.read(i))), bytes_of(wanted(i)));
      ASSERT_EQ(windows.document_begins(i), wanted.document_begins(i));
    }
    ASSERT_EQ(objects->count(), windows.size());
  }
}

TEST_P(RangedTokens, ResumeFromAStateOfTheMappedFile) {
  temp_dir dir;
  runtime runtime(options());
  put(dir, "a.bin", tokens_up_to<std::uint16_t>(100));
  auto windows_at = [&](const std::string& folder) {
    auto file = sync_wait(runtime, open_tokens(folder + "a.bin", element_type::u16));
    return token_windows(file, {.length = 10});
  };
  auto pipeline_of = [](const token_windows& windows) {
    return from_index(windows.size(), std::identity(), {.identity = windows.identity()}) |
           shuffle({.seed = 3}) | map(read_tokens(windows));
  };
  auto mapped = windows_at(dir / "");
  auto ranged = windows_at("objects://b/");
  std::vector<std::uint16_t> firsts;
  auto interrupted = runtime.run(pipeline_of(mapped));
  for (int i = 0; i < 4; ++i) firsts.push_back(values_of(*interrupted.wait_next())[0]);
  run_options rest;
  rest.state = interrupted.state();
  for (auto& window : runtime.run(pipeline_of(ranged), rest))
    firsts.push_back(values_of(window)[0]);
  std::vector<std::uint16_t> whole;
  for (auto& window : runtime.run(pipeline_of(ranged))) whole.push_back(values_of(window)[0]);
  EXPECT_EQ(firsts, whole);
  EXPECT_EQ(firsts.size(), 10u);
}

TEST_P(RangedTokens, OfACacheAreFetchedOnce) {
  runtime runtime(options());
  put_four("v1");
  mount("objects://", std::make_shared<memory_cache>(objects));
  auto file = sync_wait(runtime, open_megatron("objects://b/a"));
  token_windows windows(file, {.length = 3});
  for (int epoch = 0; epoch < 2; ++epoch)
    for (std::uint64_t i = 0; i < windows.size(); ++i)
      EXPECT_EQ(values_of(sync_wait(runtime, windows.read(i)))[0], 3 * i);
  EXPECT_EQ(objects->count(), 2u);
}

TEST_P(RangedTokens, OfAnObjectThatHasChangedAreRefused) {
  runtime runtime(options());
  put_four("v1");
  auto tagged = sync_wait(runtime, open_megatron("objects://b/a"));
  put_four("");
  auto untagged = sync_wait(runtime, open_megatron("objects://b/a"));
  objects->put("objects://b/a.bin", tokens_up_to<std::uint16_t>(11), "v2");
  EXPECT_THAT([&] { (void)sync_wait(runtime, tagged.read(0, 2)); },
              ThrowsMessage<error>("read objects://b/a.bin: the object has changed"));
  EXPECT_THAT([&] { (void)sync_wait(runtime, untagged.read(10, 2)); },
              ThrowsMessage<error>("read 4 bytes at 20 of objects://b/a.bin: it ended after 2"));
  objects->put("objects://b/a.bin", "", "v3");
  EXPECT_THROW(sync_wait(runtime, untagged.read(10, 2)), error);
  objects->remove("objects://b/a.bin");
  EXPECT_THAT([&] { (void)sync_wait(runtime, token_windows(tagged, {.length = 2}).read(0)); },
              ThrowsMessage<error>(HasSubstr("no such object")));
}

TEST_P(RangedTokens, ThatCannotBeOpenedAreNamed) {
  runtime runtime(options());
  auto refusal = [&](auto open) -> std::string {
    try {
      (void)sync_wait(runtime, open());
    } catch (const error& refused) {
      return refused.what();
    }
    return "none";
  };
  auto megatron = [&] { return refusal([] { return open_megatron("objects://b/a"); }); };
  EXPECT_THAT(megatron(), AllOf(HasSubstr("objects://b/a.idx"), HasSubstr("no such object")));
  put_four("v1");
  objects->remove("objects://b/a.bin");
  EXPECT_THAT(megatron(), AllOf(HasSubstr("objects://b/a.bin"), HasSubstr("no such object")));
  objects->put("objects://b/a.bin", "abcde");
  EXPECT_THAT(megatron(), HasSubstr("read the index objects://b/a.idx: sequence 0 has 5 tokens"));
  EXPECT_EQ(refusal([] { return open_megatron("objects://b/a", {.max_index_bytes = 121}); }),
            "read the index objects://b/a.idx: it has 122 bytes; max_index_bytes is 121");
  objects->put("objects://b/a.idx", "MMIDIDX");
  EXPECT_THAT(megatron(), HasSubstr("it does not begin with MMIDIDX"));
  EXPECT_EQ(refusal([] { return open_tokens("objects://b/a.bin", element_type::u16); }),
            "open objects://b/a.bin: its 5 bytes are no whole number of u16");
  EXPECT_EQ(refusal([] { return open_tokens("objects://b/a.bin", element_type::f32); }),
            "open objects://b/a.bin: tokens are integers, not f32");
  EXPECT_THAT(refusal([] { return open_tokens("nowhere://a.bin", element_type::u8); }),
              HasSubstr("no store is mounted at nowhere://"));
  EXPECT_THAT(refusal([] { return open_tokens("/nowhere/a.bin", element_type::u8); }),
              HasSubstr("open /nowhere/a.bin: No such file"));
}

TEST_P(RangedTokens, CannotBeReadWithoutAnAwait) {
  runtime runtime(options());
  put_four("v1");
  auto file = sync_wait(runtime, open_megatron("objects://b/a"));
  token_windows windows(file, {.length = 3});
  EXPECT_THAT([&] { (void)file.tokens(0, 1); },
              ThrowsMessage<error>("read objects://b/a.bin: it is not mapped, so that its tokens "
                                   "have to be awaited, with read"));
  EXPECT_THROW((void)windows(0), error);
  EXPECT_THAT([&] { (void)file.read(11, 2); },
              ThrowsMessage<error>("read objects://b/a.bin: 2 tokens at 11; it has 12"));
  EXPECT_THAT([&] { (void)read_tokens(windows)(4); },
              ThrowsMessage<error>(HasSubstr("there is no window 4 of 4")));
  EXPECT_THAT(
      [] { (void)token_file::open_megatron("objects://b/a?token=secret"); },
      ThrowsMessage<error>(AllOf(HasSubstr("it is a URL"), testing::Not(HasSubstr("secret")))));
}

TEST_P(RangedTokens, MayHaveALongIndex) {
  runtime runtime(options());
  constexpr int many = 500'000;
  std::vector<int> documents(many + 1);
  std::iota(documents.begin(), documents.end(), 0);
  objects->put("objects://b/a.bin", std::string(many, 't'));
  objects->put("objects://b/a.idx", index_of(std::vector<int>(many, 1), documents, 1, 1));
  auto file = sync_wait(runtime, open_megatron("objects://b/a"));
  EXPECT_EQ(file.documents(), std::uint64_t{many});
  EXPECT_EQ(file.document_begin(many - 1), std::uint64_t{many} - 1);
  auto requests = objects->requests();
  std::sort(requests.begin(), requests.end());
  EXPECT_THAT(requests,
              ElementsAre("objects://b/a.bin 0+0", "objects://b/a.idx 0+0",
                          "objects://b/a.idx 0+8388608", "objects://b/a.idx 8388608+1611434"));
}

// A view of memory that is not aligned to the tokens.
TEST_P(RangedTokens, OfAReaderNeedNoAlignment) {
  temp_dir dir;
  runtime runtime(options());
  auto text = "x" + tokens_up_to<std::uint32_t>(9);
  auto memory = std::make_shared<const memory_reader>(test::buffer_of(text), "a.tar");
  auto part = std::make_shared<const part_reader>(memory, 1, text.size() - 1, "a.tar/a.bin");
  auto file = sync_wait(runtime, open_tokens(part, element_type::u32));
  EXPECT_THAT(values_of<std::uint32_t>(sync_wait(runtime, file.read(7, 2))), ElementsAre(7, 8));
  auto path = dir.write("b.bin", tokens_up_to<std::uint16_t>(9));
  auto idx = std::make_shared<const memory_reader>(test::buffer_of(index_of({9}, {0, 1})), "b.idx");
  auto local =
      sync_wait(runtime, open_megatron(sync_wait(runtime, open_reader(path)), std::move(idx)));
  EXPECT_FALSE(local.is_mapped());
  EXPECT_THAT(values_of(sync_wait(runtime, local.read(3, 2))), ElementsAre(3, 4));
}

}  // namespace lade::io::tokens_test
