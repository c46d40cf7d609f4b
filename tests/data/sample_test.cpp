#include <lade/error.hpp>
#include <lade/sample.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace lade::sample_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Sample, HasNoLabelByDefault) {
  EXPECT_EQ(sample("a").label(), sample::no_label);
  EXPECT_EQ(sample("a", 3).label(), 3);
}

TEST(Sample, WithLabelChangesNothingElse) {
  buffer bytes(5);
  const auto* first = bytes.data();
  const auto labelled = sample("a/b.jpg", 3).with_data(std::move(bytes)).with_label(7);
  EXPECT_EQ(labelled.label(), 7);
  EXPECT_EQ(labelled.key(), "a/b.jpg");
  EXPECT_EQ(labelled.data().data(), first);
  EXPECT_EQ(labelled.data().size(), 5u);
}

TEST(Sample, HasDataEvenIfItsBufferIsEmpty) {
  EXPECT_FALSE(sample("a").has_data());
  const auto empty = sample("a").with_data(buffer(0));
  EXPECT_TRUE(empty.has_data());
  EXPECT_TRUE(sample(empty).with_label(2).has_data());
  EXPECT_TRUE(sample("a").with_data(buffer()).has_data());
}

TEST(Sample, WithoutDataHasNoneButTheRest) {
  const auto keyed = sample("a", 3).with_data(buffer(5)).without_data();
  EXPECT_FALSE(keyed.has_data());
  EXPECT_TRUE(keyed.data().empty());
  EXPECT_EQ(keyed.key(), "a");
  EXPECT_EQ(keyed.label(), 3);
}

TEST(Sample, CopiesShareKeyAndBytesButNotTheLabel) {
  const auto one = sample("a", 1).with_data(buffer(8));
  const auto two = sample(one).with_label(2);
  EXPECT_EQ(one.label(), 1);
  EXPECT_EQ(&one.key(), &two.key());
  EXPECT_EQ(one.data().data(), two.data().data());
}

static buffer bytes_of(std::string_view text) {
  buffer bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

static sample captioned() {
  return sample("a").with_fields({field("jpg", bytes_of("pixels")), field("caption", "a cat"),
                                  field("class", 3), field("score", 0.5),
                                  field("mask", tensor(element_type::boolean, {2, 2}))});
}

TEST(Sample, ReturnsTheValuesOfItsFields) {
  const auto made = captioned();
  EXPECT_EQ(made.field("jpg").bytes().text(), "pixels");
  EXPECT_EQ(made.field("caption").text(), "a cat");
  EXPECT_EQ(made.field("class").integer(), 3);
  EXPECT_EQ(made.field("score").number(), 0.5);
  EXPECT_EQ(made.field("mask").tensor().shape(), dimensions({2, 2}));
  EXPECT_EQ(made.field("jpg").text(), "pixels");
  EXPECT_EQ(made.field("class").number(), 3);
  EXPECT_EQ(made.content_bytes(), 6u + 5u + 8u + 8u + 4u);
}

TEST(Sample, AFieldThatItLacksIsNamedWithThoseItHas) {
  EXPECT_EQ(sample("a").find_field("cls"), nullptr);
  EXPECT_THAT([] { (void)sample("a").field("cls"); },
              ThrowsMessage<error>("find field cls of a: it has none"));
  EXPECT_THAT([] { (void)captioned().field("cls"); },
              ThrowsMessage<error>("find field cls of a: it has jpg, caption, class, score, mask"));
}

TEST(Sample, AFieldOfAnotherKindIsRefused) {
  EXPECT_THAT([] { (void)captioned().field("caption").integer(); },
              ThrowsMessage<error>("read field caption as integer: it holds text"));
  EXPECT_THROW((void)captioned().field("score").integer(), error);
  EXPECT_THROW((void)captioned().field("class").bytes(), error);
  EXPECT_THROW((void)captioned().field("class").text(), error);
  EXPECT_THROW((void)captioned().field("jpg").number(), error);
  EXPECT_THROW((void)captioned().field("jpg").tensor(), error);
}

TEST(Sample, AFieldOfTheSameNameIsReplacedAndCopiesKeepTheirs) {
  const auto one = captioned();
  const auto two = sample(one).with_field({"class", 4}).with_field({"id", 7});
  EXPECT_EQ(one.field("class").integer(), 3);
  EXPECT_EQ(two.field("class").integer(), 4);
  EXPECT_EQ(two.fields().size(), 6u);
  EXPECT_EQ(two.fields()[5].name(), "id");
}

TEST(Sample, WithoutAFieldHasTheOthers) {
  const auto one = captioned();
  const auto two = sample(one).without_field("jpg").without_field("none");
  EXPECT_EQ(two.find_field("jpg"), nullptr);
  EXPECT_EQ(two.fields().size(), 4u);
  EXPECT_EQ(one.fields().size(), 5u);
}

TEST(Sample, TwoFieldsOfOneNameAreRefused) {
  EXPECT_THAT([] { (void)sample("a").with_fields({field("x", 1), field("x", 2)}); },
              ThrowsMessage<error>("set fields of a: two are called x"));
}

TEST(Field, AnIntegerThatDoesNotFitIsRefused) {
  EXPECT_EQ(field("n", std::uint64_t{5}).integer(), 5);
  EXPECT_THROW(field("n", std::numeric_limits<std::uint64_t>::max()), error);
}

}  // namespace lade::sample_test
