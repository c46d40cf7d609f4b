#include <lade/detail/pipeline/sample_templates.hpp>

namespace lade {

template class run<sample>;
template class run<sample_batch>;

template pipeline<sample> shard_stage::attach(const pipeline<sample>&) const;
template pipeline<sample> shuffle_stage::attach(const pipeline<sample>&) const;

namespace detail {

template class indexed_source<sample>;
template class mapping<sample, sample, plain_calls<sample, sample>>;
template class mapping<sample, sample, task_calls<sample, sample>>;
template pipeline<sample> make_indexed(indexed_description<sample>);

}  // namespace detail
}  // namespace lade
