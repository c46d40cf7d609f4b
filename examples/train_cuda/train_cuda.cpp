// A training in plain CUDA: lade draws and batches images and copies them to the GPU, while the GPU
// trains on the batch before. Prints how long the GPU was idle between two steps.
//
//   train_cuda [--device N | cpu] [--epochs E] [--batch B]
//
// Without a GPU it trains on the CPU: with `--device cpu`, or by itself if there is none.

#include <lade/cuda/device_batch.hpp>
#include <lade/cuda/to_device.hpp>
#include <lade/lade.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "../drawn_digit.hpp"
#include "network.hpp"

constexpr std::uint64_t samples_of_epoch = 20'000;

// Draws the digit that a sample names into a slot of a batch. Another trainer would read files and
// use lade::media::decode_image here.
class digit_writer {
 public:
  static constexpr std::size_t side = 28;

  lade::tensor_spec spec() const { return {lade::element_type::u8, {side, side, 1}}; }

  void operator()(const lade::sample& named, const lade::tensor& slot) const {
    auto key = std::stoull(named.key());
    auto digit = draw_digit(key);
    lade::random noise(key);
    auto* pixel = slot.data<std::uint8_t>();
    for (std::size_t y = 0; y < side; ++y)
      for (std::size_t x = 0; x < side; ++x) {
        auto row = y * drawn_digit::height / side, column = x * drawn_digit::width / side;
        auto value = digit.pixels[row * drawn_digit::width + column] + noise.uniform(-0.3, 0.3);
        *pixel++ = static_cast<std::uint8_t>(std::clamp(value * 128 + 64, 0.0, 255.0));
      }
  }
};

static lade::sample digit_sample(std::uint64_t key) {
  return lade::sample(std::to_string(key), static_cast<std::int64_t>(draw_digit(key).label));
}

static lade::pipeline<lade::sample_batch> digit_batches(std::size_t size) {
  return lade::from_index(samples_of_epoch, digit_sample) | lade::shuffle({.seed = 7}) |
         lade::batch_into(digit_writer(), {.size = size, .drop_last = true});
}

static void report(std::uint64_t epoch, const network::totals& totals, double seconds) {
  std::printf("epoch %llu: loss %.4f, accuracy %.1f %%, %.0f images/s",
              static_cast<unsigned long long>(epoch), totals.loss / totals.images,
              100 * totals.right / totals.images, totals.images / seconds);
}

class stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

static void train_on_cpu(lade::runtime& runtime, std::size_t batch_size, std::uint64_t epochs) {
  auto trained = make_cpu_network();
  auto batches = digit_batches(batch_size);
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    stopwatch time;
    for (auto& batch : runtime.run(batches, {.epoch = epoch})) {
      auto labels = batch.labels();
      trained->step(batch.tensor().data<std::uint8_t>(), labels.data<std::int64_t>(), batch.size());
    }
    report(epoch, trained->take_totals(), time.seconds());
    std::printf("\n");
  }
}

// The time between the steps of a stream, by events around each.
class idle_time {
 public:
  explicit idle_time(lade::cuda::device on) : on_(on) {}

  void begin_step(const lade::cuda::stream& trainer) { begins_.push_back(record(trainer)); }
  void end_step(const lade::cuda::stream& trainer) { ends_.push_back(record(trainer)); }

  // Of all steps since the last call, which must have finished.
  double take_share() {
    double idle = 0;
    for (std::size_t i = 1; i < begins_.size(); ++i)
      idle += static_cast<double>(begins_[i].since(ends_[i - 1]).count());
    auto all = begins_.empty() ? 1.0 : static_cast<double>(ends_.back().since(begins_[0]).count());
    begins_.clear();
    ends_.clear();
    return idle / all;
  }

 private:
  lade::cuda::event record(const lade::cuda::stream& trainer) const {
    lade::cuda::event now(on_, {.timing = true});
    now.record(trainer);
    return now;
  }

  lade::cuda::device on_;
  std::vector<lade::cuda::event> begins_;
  std::vector<lade::cuda::event> ends_;
};

static void train_on_gpu(lade::runtime& runtime, lade::cuda::device gpu, std::size_t batch_size,
                         std::uint64_t epochs) {
  lade::cuda::current_device current(gpu);
  lade::cuda::stream trainer(gpu);
  auto trained = make_gpu_network(trainer.handle());
  idle_time idle(gpu);
  auto batches = digit_batches(batch_size) | lade::cuda::to_device({.device = gpu.index()});
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    stopwatch time;
    for (auto& batch : runtime.run(batches, {.epoch = epoch})) {
      batch.wait_on(trainer);
      idle.begin_step(trainer);
      trained->step(batch.tensor().data<std::uint8_t>(), batch.labels().data<std::int64_t>(),
                    batch.size());
      idle.end_step(trainer);
    }
    auto totals = trained->take_totals();
    report(epoch, totals, time.seconds());
    std::printf(", GPU idle %.1f %%\n", 100 * idle.take_share());
  }
}

struct arguments {
  std::optional<int> device;  // none: the CPU
  std::uint64_t epochs = 3;
  std::size_t batch = 200;
};

static std::uint64_t number(std::string_view option, std::string_view text) {
  std::uint64_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value > 1'000'000)
    throw std::invalid_argument(std::string(option) + " " + std::string(text) +
                                " is not a number up to 1,000,000");
  return value;
}

static arguments parse(int argc, char** argv) {
  arguments result;
  if (lade::cuda::device::count() > 0) result.device = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string_view option = argv[i], value = argv[i + 1];
    if (option == "--device" && value == "cpu")
      result.device.reset();
    else if (option == "--device")
      result.device = static_cast<int>(number(option, value));
    else if (option == "--epochs")
      result.epochs = number(option, value);
    else if (option == "--batch")
      result.batch = number(option, value);
    else
      throw std::invalid_argument("unknown option " + std::string(option));
  }
  if (argc % 2 == 0) throw std::invalid_argument("the last option has no value");
  if (result.batch == 0 || result.batch > network::most_in_batch)
    throw std::invalid_argument("--batch must be from 1 to " +
                                std::to_string(network::most_in_batch));
  return result;
}

int main(int argc, char** argv) try {
  auto options = parse(argc, argv);
  lade::runtime runtime;
  if (options.device) {
    lade::cuda::device gpu(*options.device);
    std::printf("training on %s\n", gpu.name().c_str());
    train_on_gpu(runtime, gpu, options.batch, options.epochs);
  } else {
    auto why = lade::cuda::device::why_none();
    std::printf("training on the CPU%s\n", why.empty() ? "" : (" (" + why + ")").c_str());
    train_on_cpu(runtime, options.batch, options.epochs);
  }
} catch (const std::exception& failure) {
  std::fprintf(stderr, "train_cuda: %s\n", failure.what());
  return 1;
}
