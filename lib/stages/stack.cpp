#include <lade/detail/data/stacked_fields.hpp>
#include <lade/error.hpp>
#include <lade/pad.hpp>
#include <lade/stack.hpp>
#include <lade/support/require.hpp>

#include <span>
#include <utility>

namespace lade {
namespace detail {

static sample_batch stack_samples(std::vector<sample> samples, std::span<const std::string> fields,
                                  const context& execution) {
  if (samples.empty()) throw error(errc::invalid_data, "stack samples", "none");
  std::vector<named_tensor> tensors;
  for (auto& name : fields) tensors.emplace_back(name, stack_field(samples, name, execution));
  for (auto& each : samples) each = without_contents(std::move(each), fields);
  return {std::move(tensors), std::move(samples)};
}

}  // namespace detail

stack_stage::stack_stage(const stack_options& options)
    : options_(options),
      name_(options.name.empty() ? "stack" : options.name),
      fields_(detail::field_names(options.fields, name_)) {
  detail::require_fields(fields_, name_);
  detail::require_concurrency(name_, options.concurrency, 1);
  detail::require_budget(name_, options.error_budget, options.on_error);
}

pipeline<sample_batch> stack_stage::attach(const pipeline<std::vector<sample>>& in) const {
  return detail::make_pipeline<sample_batch>(
      detail::collating(detail::node_facts::behind(in.last(), "stack", name_), options_.concurrency,
                        options_.pool,
                        {.finally = options_.on_error, .budget = options_.error_budget}),
      [in, self = *this](const detail::open_context& run) {
        return detail::open_collating<sample_batch>(
            in, run, self.options_,
            [fields = self.fields_](std::vector<sample>&& samples, const context& execution) {
              return detail::stack_samples(std::move(samples), fields, execution);
            });
      });
}

}  // namespace lade
