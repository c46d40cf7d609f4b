// The templates of pipelines of samples, which the library contains: a program that includes this
// does not compile them again.

#pragma once

#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/sample.hpp>
#include <lade/sample_batch.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>

namespace lade {

extern template class run<sample>;
extern template class run<sample_batch>;

extern template pipeline<sample> shard_stage::attach(const pipeline<sample>&) const;
extern template pipeline<sample> shuffle_stage::attach(const pipeline<sample>&) const;

namespace detail {

extern template class indexed_source<sample>;
extern template class mapping<sample, sample, plain_calls<sample, sample>>;
extern template class mapping<sample, sample, task_calls<sample, sample>>;
extern template pipeline<sample> make_indexed(indexed_description<sample>);

}  // namespace detail
}  // namespace lade
