// A training in plain CUDA: lade draws and batches images and copies them to the GPU, while the GPU
// trains on the batch before. Prints how long the GPU was idle between two steps.
//
//   train_cuda [--device N | cpu] [--epochs E] [--batch B] [--draws D] [--step-ratio R]
//
// Without a GPU it trains on the CPU: with `--device cpu`, or by itself if there is none.
//
// A pipeline is fast enough if the trainer is not idle although a step takes little longer than the
// pipeline's batch. `--step-ratio R` measures the pipeline without a trainer, and then lengthens
// the steps to R times its time for a batch, by work that changes no weight. `--draws D` draws each
// image D times, for a pipeline that is as slow as one that decodes files.

#include <lade/cuda/device_batch.hpp>
#include <lade/cuda/to_device.hpp>
#include <lade/lade.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
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

  explicit digit_writer(std::uint64_t draws) : draws_(draws) {}

  lade::tensor_spec spec() const { return {lade::element_type::u8, {side, side, 1}}; }

  void operator()(const lade::sample& named, const lade::tensor& slot) const {
    for (std::uint64_t i = 0; i < draws_; ++i) draw(named, slot);
  }

 private:
  static void draw(const lade::sample& named, const lade::tensor& slot) {
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

  std::uint64_t draws_;
};

struct training_options {
  std::optional<int> device;  // none: the CPU
  std::uint64_t epochs = 3;
  std::size_t batch = 200;
  std::uint64_t draws = 1;
  double step_ratio = 0;  // 0: steps are as long as they are
};

static lade::sample digit_sample(std::uint64_t key) {
  return lade::sample(std::to_string(key), static_cast<std::int64_t>(draw_digit(key).label));
}

static lade::pipeline<lade::sample_batch> digit_batches(const training_options& settings) {
  return lade::from_index(samples_of_epoch, digit_sample) | lade::shuffle({.seed = 7}) |
         lade::batch_into(digit_writer(settings.draws),
                          {.size = settings.batch, .drop_last = true});
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

// A step on a batch that is where the network is, and repetitions of a small part of its work.
template <class Batch>
static void make_step(network& trained, const Batch& batch, unsigned repetitions) {
  auto* images = batch.tensor().template data<std::uint8_t>();
  const auto& labels = batch.labels();
  trained.step(images, labels.template data<std::int64_t>(), batch.size());
  auto part = std::min<std::size_t>(batch.size(), 16);
  for (unsigned i = 0; i < repetitions; ++i) trained.repeat(images, part);
}

// The time of the pipeline for a batch, if `take` does no other work. The first epoch is not
// measured: there the pipeline allocates memory that it keeps.
template <class T, class F>
static double seconds_per_batch(lade::runtime& runtime, const lade::pipeline<T>& batches, F take) {
  for (auto& batch : runtime.run(batches, {.epoch = 0})) take(batch);
  stopwatch time;
  int count = 0;
  for (auto& batch : runtime.run(batches, {.epoch = 1})) {
    take(batch);
    ++count;
  }
  return time.seconds() / count;
}

// A batch, after which the pipeline rests.
template <class T>
static T first_batch(lade::runtime& runtime, const lade::pipeline<T>& batches) {
  auto steps = runtime.run(batches, {.epoch = 0});
  return steps.wait_next().value();
}

// How many repetitions make a step `ratio` times as long as the pipeline's time for a batch.
// `seconds_of(n)`: how long a step with n repetitions takes.
template <class F>
static unsigned repetitions_for(double ratio, double seconds_of_batch, F seconds_of) {
  constexpr unsigned some = 50;
  double bare = seconds_of(0);
  double each = (seconds_of(some) - bare) / some;
  double missing = ratio * seconds_of_batch - bare;
  auto repetitions =
      each > 0 && missing > 0 ? static_cast<unsigned>(std::lround(missing / each)) : 0;
  double seconds_of_step = seconds_of(repetitions);
  std::printf("the pipeline makes a batch in %.0f us; a step takes %.0f us, %.2f times as long\n",
              1e6 * seconds_of_batch, 1e6 * seconds_of_step, seconds_of_step / seconds_of_batch);
  return repetitions;
}

constexpr int measured_steps = 10;

static unsigned repetitions_on_cpu(lade::runtime& runtime, const training_options& settings) {
  if (settings.step_ratio == 0) return 0;
  auto batches = digit_batches(settings);
  auto seconds = seconds_per_batch(runtime, batches, [](auto&) {});
  auto batch = first_batch(runtime, batches);
  auto probe = make_cpu_network();
  return repetitions_for(settings.step_ratio, seconds, [&](unsigned repetitions) {
    make_step(*probe, batch, repetitions);
    stopwatch time;
    for (int i = 0; i < measured_steps; ++i) make_step(*probe, batch, repetitions);
    return time.seconds() / measured_steps;
  });
}

static void train_on_cpu(lade::runtime& runtime, const training_options& settings) {
  auto repetitions = repetitions_on_cpu(runtime, settings);
  auto trained = make_cpu_network();
  auto batches = digit_batches(settings);
  for (std::uint64_t epoch = 0; epoch < settings.epochs; ++epoch) {
    stopwatch time;
    double busy = 0;
    for (auto& batch : runtime.run(batches, {.epoch = epoch})) {
      stopwatch step;
      make_step(*trained, batch, repetitions);
      busy += step.seconds();
    }
    auto seconds = time.seconds();
    report(epoch, trained->take_totals(), seconds);
    std::printf(", trainer idle %.1f %%\n", 100 * (1 - busy / seconds));
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

static unsigned repetitions_on_gpu(lade::runtime& runtime, const training_options& settings,
                                   const lade::pipeline<lade::cuda::device_batch>& batches,
                                   const lade::cuda::stream& trainer) {
  if (settings.step_ratio == 0) return 0;
  auto seconds = seconds_per_batch(runtime, batches, [&](auto& batch) { batch.wait_on(trainer); });
  auto batch = first_batch(runtime, batches);
  batch.wait_on(trainer);
  auto probe = make_gpu_network(trainer.handle());
  lade::cuda::device gpu(*settings.device);
  lade::cuda::event begin(gpu, {.timing = true}), end(gpu, {.timing = true});
  return repetitions_for(settings.step_ratio, seconds, [&](unsigned repetitions) {
    make_step(*probe, batch, repetitions);  // the first one loads the kernels
    begin.record(trainer);
    for (int i = 0; i < measured_steps; ++i) make_step(*probe, batch, repetitions);
    end.record(trainer);
    end.synchronize();
    return 1e-3 * static_cast<double>(end.since(begin).count()) / measured_steps;
  });
}

static void train_on_gpu(lade::runtime& runtime, const training_options& settings) {
  lade::cuda::device gpu(*settings.device);
  std::printf("training on %s\n", gpu.name().c_str());
  lade::cuda::current_device current(gpu);
  lade::cuda::stream trainer(gpu);
  auto batches = digit_batches(settings) | lade::cuda::to_device({.device = gpu.index()});
  auto repetitions = repetitions_on_gpu(runtime, settings, batches, trainer);
  auto trained = make_gpu_network(trainer.handle());
  idle_time idle(gpu);
  for (std::uint64_t epoch = 0; epoch < settings.epochs; ++epoch) {
    stopwatch time;
    for (auto& batch : runtime.run(batches, {.epoch = epoch})) {
      batch.wait_on(trainer);
      idle.begin_step(trainer);
      make_step(*trained, batch, repetitions);
      idle.end_step(trainer);
    }
    auto totals = trained->take_totals();
    report(epoch, totals, time.seconds());
    std::printf(", GPU idle %.2f %%\n", 100 * idle.take_share());
  }
}

static std::uint64_t number(std::string_view option, std::string_view text) {
  std::uint64_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value > 1'000'000)
    throw std::invalid_argument(std::string(option) + " " + std::string(text) +
                                " is not a number up to 1,000,000");
  return value;
}

static double positive_number(std::string_view option, const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value > 0 && value <= 1000))
    throw std::invalid_argument(std::string(option) + " " + text +
                                " is not a number above 0, up to 1,000");
  return value;
}

static training_options parse(int argc, char** argv) {
  training_options result;
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
    else if (option == "--draws")
      result.draws = number(option, value);
    else if (option == "--step-ratio")
      result.step_ratio = positive_number(option, argv[i + 1]);
    else
      throw std::invalid_argument("unknown option " + std::string(option));
  }
  if (argc % 2 == 0) throw std::invalid_argument("the last option has no value");
  if (result.batch == 0 || result.batch > network::most_in_batch)
    throw std::invalid_argument("--batch must be from 1 to " +
                                std::to_string(network::most_in_batch));
  if (result.draws == 0) throw std::invalid_argument("--draws must be at least 1");
  return result;
}

int main(int argc, char** argv) try {
  auto options = parse(argc, argv);
  lade::runtime runtime;
  if (options.device) {
    train_on_gpu(runtime, options);
  } else {
    auto reason = lade::cuda::device::why_none();
    std::printf("training on the CPU%s\n", reason.empty() ? "" : (" (" + reason + ")").c_str());
    train_on_cpu(runtime, options);
  }
} catch (const std::exception& failure) {
  std::fprintf(stderr, "train_cuda: %s\n", failure.what());
  return 1;
}
