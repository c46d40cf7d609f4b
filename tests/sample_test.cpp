#include <lade/sample.hpp>

#include <gtest/gtest.h>

namespace lade {

TEST(Sample, HasNoLabelUntilItIsGivenOne) {
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

TEST(Sample, HasDataOnceItIsGivenSomeAlsoOfNoBytes) {
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

}  // namespace lade
