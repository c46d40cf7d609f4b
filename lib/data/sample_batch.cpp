#include <lade/error.hpp>
#include <lade/sample_batch.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace lade {

static void require_tensors(const std::vector<named_tensor>& tensors) {
  if (tensors.empty()) throw error(errc::invalid_argument, "make a batch", "it has no tensor");
  for (auto each = tensors.begin(); each != tensors.end(); ++each)
    if (std::ranges::find(tensors.begin(), each, each->name(), &named_tensor::name) != each)
      throw error(errc::invalid_argument, "make a batch", "two tensors are called " + each->name());
}

static std::vector<named_tensor> one_tensor(tensor data) {
  std::vector<named_tensor> tensors;
  tensors.emplace_back("data", std::move(data));
  return tensors;
}

sample_batch::sample_batch(lade::tensor data, std::vector<sample> samples)
    : sample_batch(one_tensor(std::move(data)), std::move(samples)) {}

sample_batch::sample_batch(std::vector<named_tensor> tensors, std::vector<sample> samples)
    : tensors_(std::move(tensors)), samples_(std::move(samples)) {
  require_tensors(tensors_);
}

const tensor* sample_batch::find(std::string_view name) const noexcept {
  auto found = std::ranges::find(tensors_, name, &named_tensor::name);
  return found == tensors_.end() ? nullptr : &found->tensor();
}

const tensor& sample_batch::operator[](std::string_view name) const {
  if (auto* found = find(name)) return *found;
  std::string names;
  for (auto& each : tensors_) names += (names.empty() ? "" : ", ") + each.name();
  throw error(errc::invalid_argument, fmt::format("find tensor {} of a batch", name),
              "it has " + names);
}

tensor sample_batch::labels() const {
  lade::tensor labels(element_type::i64, {static_cast<std::int64_t>(size())});
  auto* next = labels.data<std::int64_t>();
  for (auto& each : samples_) *next++ = each.label();
  return labels;
}

std::size_t sample_batch::content_bytes() const {
  std::size_t bytes = 0;
  for (auto& each : tensors_) bytes += each.tensor().spec().bytes();
  for (auto& each : samples_) bytes += each.content_bytes();
  return bytes;
}

}  // namespace lade
