#include <lade/batch.hpp>
#include <lade/description.hpp>
#include <lade/dlpack.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/sample_batch.hpp>
#include <lade/stack.hpp>

#include "../support/pipelines.hpp"
#include "../support/seed.hpp"

#include <dlpack/dlpack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace lade::stack_test {

using test::collect;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

static tensor row_of(std::int32_t first, std::int64_t length) {
  tensor made(element_type::i32, {length});
  for (std::int64_t i = 0; i < length; ++i)
    made.data<std::int32_t>()[i] = first + static_cast<std::int32_t>(i);
  return made;
}

static sample with_fields(int number) {
  std::vector<field> fields;
  fields.emplace_back("x", row_of(10 * number, 3));
  fields.emplace_back("count", number);
  fields.emplace_back("weight", number / 2.0);
  fields.emplace_back("caption", "number " + std::to_string(number));
  fields.emplace_back("raw", buffer(8));
  return sample(std::to_string(number), number).with_fields(std::move(fields));
}

static std::vector<sample> several(int count) {
  std::vector<sample> all;
  for (int i = 0; i < count; ++i) all.push_back(with_fields(i));
  return all;
}

template <class T>
static std::vector<T> elements(const tensor& of) {
  EXPECT_TRUE(of.contiguous());
  return {of.data<T>(), of.data<T>() + of.spec().elements()};
}

TEST(SampleBatch, FindsTensorsByName) {
  std::vector<named_tensor> tensors;
  tensors.emplace_back("image", row_of(0, 2));
  tensors.emplace_back("mask", row_of(5, 2));
  sample_batch batch(std::move(tensors), several(2));
  EXPECT_EQ(batch.tensor().bytes(), batch["image"].bytes());
  EXPECT_THAT(elements<std::int32_t>(batch["mask"]), ElementsAre(5, 6));
  EXPECT_EQ(batch.find("depth"), nullptr);
  EXPECT_THAT([&] { (void)batch["depth"]; },
              ThrowsMessage<error>(HasSubstr("find tensor depth of a batch: it has image, mask")));
  EXPECT_GT(batch.content_bytes(), 2u * 2 * 4);
}

TEST(SampleBatch, RefusesNoTensorAndDuplicateNames) {
  EXPECT_THROW(sample_batch(std::vector<named_tensor>(), {}), error);
  std::vector<named_tensor> twice;
  twice.emplace_back("x", row_of(0, 1));
  twice.emplace_back("x", row_of(0, 1));
  EXPECT_THAT([&] { sample_batch(twice, {}); },
              ThrowsMessage<error>(HasSubstr("two tensors are called x")));
}

TEST(Stack, MakesTensorsOfFields) {
  runtime runtime({.threads = 2});
  auto batches =
      collect(runtime, from(several(5)) | batch(3) | stack({.fields = "x,count,weight"}));
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0]["x"].spec(), (tensor_spec{element_type::i32, {3, 3}}));
  EXPECT_THAT(elements<std::int32_t>(batches[1]["x"]), ElementsAre(30, 31, 32, 40, 41, 42));
  EXPECT_THAT(elements<std::int64_t>(batches[0]["count"]), ElementsAre(0, 1, 2));
  EXPECT_THAT(elements<double>(batches[0]["weight"]), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(elements<std::int64_t>(batches[1].labels()), ElementsAre(3, 4));
}

TEST(Stack, TakesNamesOfFieldsWithBlanksAroundThem) {
  runtime runtime({.threads = 2});
  auto batches =
      collect(runtime, from(several(2)) | batch(2) | stack({.fields = " x, count ,\tweight,, "}));
  EXPECT_EQ(batches.at(0).tensors().size(), 3u);
  EXPECT_THAT(elements<std::int64_t>(batches.at(0)["count"]), ElementsAre(0, 1));
  EXPECT_THAT([] { stack({.fields = "x, y,x "}); }, ThrowsMessage<error>(HasSubstr("x twice")));
  EXPECT_THAT([] { stack({.fields = " , "}); }, testing::Throws<error>());
}

TEST(Stack, SaysWhereLabelsAre) {
  runtime runtime({.threads = 1});
  auto batches = from(several(2)) | batch(2) | stack({.fields = "x,label"});
  EXPECT_THAT([&] { collect(runtime, batches); },
              ThrowsMessage<error>(HasSubstr("its label is in labels()")));
}

TEST(Stack, KeepsTextAndDropsBytesAndWhatHasBecomeTensors) {
  runtime runtime({.threads = 2});
  auto batches = collect(runtime, from(several(1)) | batch(1) | stack({.fields = "x"}));
  auto& kept = batches.at(0).samples().at(0);
  EXPECT_EQ(kept.field("caption").text(), "number 0");
  EXPECT_EQ(kept.field("count").integer(), 0);
  EXPECT_EQ(kept.find_field("x"), nullptr);
  EXPECT_EQ(kept.find_field("raw"), nullptr);
}

TEST(Stack, PutsStridedTensorsInOrder) {
  tensor whole(element_type::i32, {2, 3});
  for (int i = 0; i < 6; ++i) whole.data<std::int32_t>()[i] = i;
  tensor turned({element_type::i32, {3, 2}}, {1, 3}, whole.memory(), whole.bytes());
  std::vector<sample> one{sample("a").with_field(field("x", turned))};
  runtime runtime({.threads = 1});
  auto batches = collect(runtime, from(one) | batch(1) | stack({.fields = "x"}));
  EXPECT_THAT(elements<std::int32_t>(batches.at(0)["x"]), ElementsAre(0, 3, 1, 4, 2, 5));
}

static void expect_refusal(std::vector<sample> samples, std::string_view why) {
  runtime runtime({.threads = 1});
  auto size = samples.size();
  auto all = from(std::move(samples)) | batch(size) | stack({.fields = "x"});
  EXPECT_THAT([&] { collect(runtime, all); }, ThrowsMessage<error>(HasSubstr(std::string(why))));
}

TEST(Stack, RefusesFieldsThatDoNotFitTogether) {
  auto of = [](const char* key, field value) { return sample(key).with_field(std::move(value)); };
  expect_refusal({with_fields(0), sample("b")},
                 "put field x of b into a tensor: the sample has no such field");
  expect_refusal({with_fields(0), of("b", field("x", row_of(0, 4)))},
                 "it is i32[4], and that of other samples i32[3]");
  expect_refusal({of("a", field("x", 1)), of("b", field("x", 1.5))},
                 "it is f64[], and that of other samples i64[]");
  expect_refusal({of("a", field("x", "text"))}, "it is text, not a number or a tensor");
}

TEST(Stack, RefusesOptionsThatCannotWork) {
  EXPECT_THAT([] { stack({}); }, ThrowsMessage<error>(HasSubstr("must be set (fields)")));
  EXPECT_THAT([] { stack({.fields = "x,y,x"}); }, ThrowsMessage<error>(HasSubstr("x twice")));
}

// Writes the sample's number as i64 [1], under a name.
class number_to {
 public:
  explicit number_to(std::string field, std::int64_t times = 1)
      : field_(std::move(field)), times_(times) {}
  std::string_view field() const noexcept { return field_; }
  tensor_spec spec() const { return {element_type::i64, {1}}; }
  void operator()(const sample& in, const tensor& slot) const {
    *slot.data<std::int64_t>() = times_ * in.field("count").integer();
  }

 private:
  std::string field_;
  std::int64_t times_;
};

TEST(BatchInto, StacksFieldsBesideWhatItWrites) {
  runtime runtime({.threads = 3});
  auto batches = collect(runtime, from(several(7)) | batch_into(number_to("doubled", 2),
                                                                {.size = 4, .fields = "x,weight"}));
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_THAT(elements<std::int64_t>(batches[1]["doubled"]), ElementsAre(8, 10, 12));
  EXPECT_THAT(elements<double>(batches[0]["weight"]), ElementsAre(0, 0.5, 1, 1.5));
  EXPECT_EQ(batches[1]["x"].shape(), (dimensions{3, 3}));
  EXPECT_EQ(elements<std::int32_t>(batches[1]["x"])[3], 50);
  auto& kept = batches[0].samples()[0];
  EXPECT_EQ(kept.field("caption").text(), "number 0");
  EXPECT_EQ(kept.find_field("raw"), nullptr);
}

TEST(BatchInto, HasATensorForEachOfSeveralWriters) {
  runtime runtime({.threads = 2});
  auto batches = collect(
      runtime,
      from(several(3)) | batch_into(writers(number_to("one"), number_to("ten", 10)), {.size = 3}));
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_THAT(elements<std::int64_t>(batches[0].tensor()), ElementsAre(0, 1, 2));
  EXPECT_THAT(elements<std::int64_t>(batches[0]["ten"]), ElementsAre(0, 10, 20));
}

TEST(BatchInto, RefusesTwoTensorsOfOneName) {
  EXPECT_THAT([] { batch_into(writers(number_to("a"), number_to("a")), {.size = 1}); },
              ThrowsMessage<error>(HasSubstr("two tensors of a batch would be called a")));
  EXPECT_THAT([] { batch_into(number_to("x"), {.size = 1, .fields = "x"}); },
              ThrowsMessage<error>(HasSubstr("two tensors of a batch would be called x")));
}

TEST(BatchInto, ClosesTheGapsInAllTensorsOfSamplesThatLackAField) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  runtime runtime({.threads = 3});
  random draw(seed);
  for (int round = 0; round < 50; ++round) {
    auto count = static_cast<int>(draw.below(30));
    auto size = 1 + draw.below(7);
    std::vector<sample> samples;
    std::vector<std::int64_t> expected;
    for (int i = 0; i < count; ++i) {
      auto each = with_fields(i);
      if (draw.below(3) == 0)
        each = std::move(each).without_field(draw.below(2) ? "x" : "weight");
      else
        expected.push_back(i);
      samples.push_back(std::move(each));
    }
    auto all = from(samples) |
               batch_into(number_to("n"),
                          {.size = size, .fields = "x,weight", .on_error = on_error::skip});
    std::vector<std::int64_t> delivered;
    for (auto& batch : runtime.run(all)) {
      auto numbers = elements<std::int64_t>(batch["n"]);
      ASSERT_EQ(batch["x"].shape()[0], static_cast<std::int64_t>(batch.size()));
      for (std::size_t i = 0; i < batch.size(); ++i) {
        EXPECT_EQ(elements<std::int32_t>(batch["x"])[3 * i], 10 * numbers[i]);
        EXPECT_EQ(elements<double>(batch["weight"])[i], static_cast<double>(numbers[i]) / 2);
        delivered.push_back(numbers[i]);
      }
    }
    ASSERT_EQ(delivered, expected);
  }
}

TEST(BatchInto, TensorsOfFieldsAreSharedThroughDLPack) {
  runtime runtime({.threads = 1});
  auto batches =
      collect(runtime, from(several(2)) | batch_into(number_to("n"), {.size = 2, .fields = "x"}));
  auto* shared = to_dlpack(batches.at(0)["x"]);
  EXPECT_EQ(shared->dl_tensor.ndim, 2);
  EXPECT_EQ(shared->dl_tensor.shape[0], 2);
  EXPECT_EQ(shared->dl_tensor.data, batches.at(0)["x"].bytes());
  shared->deleter(shared);
}

TEST(Stack, IsDescribed) {
  auto stacked =
      from(std::vector{with_fields(1)}) | batch(2) | stack({.fields = "x", .concurrency = 3});
  EXPECT_THAT(to_string(stacked.describe()),
              HasSubstr("3 stack of 2, on the CPU pool, concurrency 3, 1 items"));
  EXPECT_EQ(stacked.describe().stages.back().held_items, 6u);
}

}  // namespace lade::stack_test
