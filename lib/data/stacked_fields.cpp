#include <lade/buffer_pool.hpp>
#include <lade/detail/data/stacked_fields.hpp>
#include <lade/error.hpp>
#include <lade/support/divide_list.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace lade::detail {

std::vector<std::string> field_names(std::string_view list, const std::string& stage) {
  auto names = support::divide_list(list);
  for (auto each = names.begin(); each != names.end(); ++each)
    if (std::find(names.begin(), each, *each) != each)
      throw error(errc::invalid_argument, stage, fmt::format("fields has {} twice", *each));
  return names;
}

std::optional<tensor_spec> stacked_spec(const field& from) {
  switch (from.type()) {
    case field::kind::integer: return tensor_spec{element_type::i64, {}};
    case field::kind::number: return tensor_spec{element_type::f64, {}};
    case field::kind::tensor:
      if (from.tensor().rank() < dimensions::max_rank) return from.tensor().spec();
      return std::nullopt;
    default: return std::nullopt;
  }
}

static std::string why_not_stacked(const field& from) {
  if (from.type() == field::kind::tensor) return "it has as many dimensions as tensors may have";
  return fmt::format("it is {}, not a number or a tensor", name(from.type()));
}

[[noreturn]] static void refuse_field(const sample& from, const std::string& name,
                                      std::string_view why) {
  throw error(errc::invalid_data,
              fmt::format("put field {} of {} into a tensor", name, from.name()), why);
}

const field& stackable_field(const sample& from, const std::string& name) {
  auto* found = from.find_field(name);
  if (!found)
    refuse_field(from, name,
                 name == "label" ? "the sample has no such field; its label is in labels()"
                                 : "the sample has no such field");
  if (!stacked_spec(*found)) refuse_field(from, name, why_not_stacked(*found));
  return *found;
}

static std::string text_of(const tensor_spec& spec) {
  return std::string(name(spec.type)) + to_string(spec.shape);
}

void write_field(const sample& from, const std::string& name, const tensor& slot) {
  auto& value = stackable_field(from, name);
  auto spec = *stacked_spec(value);
  if (spec != slot.spec())
    refuse_field(
        from, name,
        fmt::format("it is {}, and that of other samples {}", text_of(spec), text_of(slot.spec())));
  if (value.type() == field::kind::integer) {
    auto integer = value.integer();
    std::memcpy(slot.bytes(), &integer, sizeof(integer));
  } else if (value.type() == field::kind::number) {
    auto number = value.number();
    std::memcpy(slot.bytes(), &number, sizeof(number));
  } else if (!value.tensor().where().is_host_accessible()) {
    refuse_field(from, name, "it is not in host memory");
  } else {
    copy_elements(value.tensor(), slot.bytes());
  }
}

tensor stack_field(std::span<const sample> samples, const std::string& name,
                   const context& execution) {
  auto spec = *stacked_spec(stackable_field(samples.front(), name));
  spec.shape = spec.shape.prepend(static_cast<std::int64_t>(samples.size()));
  tensor stacked(spec, allocate_now(execution, spec.bytes()));
  for (std::size_t i = 0; i < samples.size(); ++i)
    write_field(samples[i], name, stacked[static_cast<std::int64_t>(i)]);
  return stacked;
}

sample without_contents(sample from, std::span<const std::string> stacked) {
  auto stays = [&](const field& each) {
    return each.type() != field::kind::bytes &&
           std::ranges::find(stacked, each.name()) == stacked.end();
  };
  auto fields = from.fields();
  from = std::move(from).without_data();
  if (std::ranges::all_of(fields, stays)) return from;
  std::vector<field> kept;
  std::ranges::copy_if(fields, std::back_inserter(kept), stays);
  return std::move(from).with_fields(std::move(kept));
}

}  // namespace lade::detail
