#include "jpeg_batch_writer.hpp"
#include "label_copy.hpp"
#include "on_cpu_pool.hpp"

#include <lade/cuda/decode_jpegs.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/error.hpp>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace lade::cuda {

struct decode_jpegs::skips {
  void count(const std::vector<std::exception_ptr>& failures) {
    constexpr std::size_t most_reasons = 16;
    std::lock_guard lock(mutex);
    for (const auto& failure : failures) {
      if (!failure) continue;
      ++counts.skipped;
      if (counts.reasons.size() < most_reasons) counts.reasons.push_back(reason_of(failure));
    }
  }

  static std::string reason_of(const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const error& reason) {
      return reason.what();
    }
  }

  std::mutex mutex;
  decode_jpegs_statistics counts;  // guarded by the mutex
};

decode_jpegs::decode_jpegs(jpeg_decoder decoder, const image_batch& to, view_of views,
                           const decode_jpegs_options& options)
    : decoder_(std::move(decoder)),
      to_(checked_kind(to)),
      views_(std::move(views)),
      options_(options),
      skips_(std::make_shared<skips>()),
      copying_labels_(decoder_.on()) {}

decode_jpegs_statistics decode_jpegs::stats() const {
  std::lock_guard lock(skips_->mutex);
  return skips_->counts;
}

static std::vector<jpeg_source> sources_of(const std::vector<sample>& samples) {
  std::vector<jpeg_source> sources;
  sources.reserve(samples.size());
  for (const auto& each : samples) {
    if (!each.has_data())
      throw error(errc::invalid_argument, "decode " + each.name(), "it has not been read");
    sources.emplace_back(each.data(), each.name());
  }
  return sources;
}

static error none_left(const std::vector<std::exception_ptr>& failures) {
  try {
    std::rethrow_exception(failures.front());
  } catch (const error& first) {
    return error(first.code(), fmt::format("decode a batch of {} samples", failures.size()),
                 std::string("all have failed, the first: ") + first.what());
  }
}

// Throws if failures of images fail the batch.
static void require_images(const resized_jpegs& resized, lade::on_error on_error) {
  const auto& failures = resized.failures();
  auto has_failed = [](const std::exception_ptr& failure) { return failure != nullptr; };
  if (on_error == lade::on_error::skip && std::ranges::all_of(failures, has_failed))
    throw none_left(failures);
  const auto first = std::ranges::find_if(failures, has_failed);
  if (on_error == lade::on_error::fail && first != failures.end()) std::rethrow_exception(*first);
}

// The samples that have been decoded.
static std::vector<sample> decoded_samples(std::vector<sample> all,
                                           const std::vector<std::exception_ptr>& failures) {
  std::vector<sample> decoded;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!failures[i]) decoded.push_back(std::move(all[i]).without_data());
  return decoded;
}

task<device_batch> decode_jpegs::decode(decode_jpegs self, std::vector<sample> samples) {
  jpeg_decoder::view_of views;
  if (self.views_)
    views = [&](std::size_t index, int width, int height) {
      return self.views_(samples[index], width, height);
    };
  auto sources = sources_of(samples);
  auto resized = co_await self.decoder_.decode(std::move(sources), self.to_, std::move(views));
  require_images(resized, self.options_.on_error);
  auto decoded = decoded_samples(std::move(samples), resized.failures());
  std::vector<device_block> blocks{resized.memory()};
  std::vector<named_tensor> tensors{named_tensor("data", resized.images())};
  auto labels = co_await copy_labels(decoded, self.decoder_.memory(), self.copying_labels_, blocks);
  event ready(self.decoder_.on());  // a new event has passed: all work is complete
  self.skips_->count(resized.failures());
  co_return device_batch(std::move(tensors), std::move(decoded), std::move(labels),
                         std::move(blocks), std::move(ready));
}

task<device_batch> decode_jpegs::operator()(std::vector<sample> samples) const {
  return on_cpu_pool(decode(*this, std::move(samples)));
}

}  // namespace lade::cuda
