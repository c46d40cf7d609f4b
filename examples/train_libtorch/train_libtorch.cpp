// train_libtorch DATA RUN: trains a convolutional network of libtorch on a folder of images. Killed
// at any time and started again, it resumes with the same losses. The pipelines are in
// training_batches() and test_batches(), the loop is in train().

#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/lade.hpp>
#include <lade/media/image.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lade_torch.hpp"
#include "network.hpp"
#include "replace_file.hpp"
#include "shapes.hpp"
#include "training_options.hpp"

namespace {

using clock_type = std::chrono::steady_clock;
using batches = lade::pipeline<lade::sample_batch>;

lade::media::image_options image_options() {
  return {.width = 64,
          .height = 64,
          .layout = lade::media::image_layout::chw,
          .type = lade::element_type::f32,
          .mean = {0.5F, 0.5F, 0.5F},
          .stddev = {0.25F, 0.25F, 0.25F}};
}

batches training_batches(const training_options& settings) {
  auto image = image_options();
  image.fit = lade::media::image_fit::random_crop;
  image.min_area = 0.7;
  return lade::from(lade::io::labelled_files(settings.data + "/train", "*/*.{png,jpg,jpeg}")) |
         lade::shuffle({.seed = settings.seed}) | lade::map(lade::io::read, {.concurrency = 16}) |
         lade::batch_into(lade::media::decode_image(image),
                          {.size = settings.batch, .drop_last = true});
}

batches test_batches(const training_options& settings) {
  return lade::from(lade::io::labelled_files(settings.data + "/test", "*/*.{png,jpg,jpeg}")) |
         lade::map(lade::io::read, {.concurrency = 16}) |
         lade::batch_into(lade::media::decode_image(image_options()), {.size = settings.batch});
}

// The names of the classes, which must be those of the test images too.
std::vector<std::string> find_classes(const training_options& settings) {
  auto classes = lade::io::labelled_files(settings.data + "/train").class_names();
  if (classes.size() < 2)
    throw lade::error(lade::errc::invalid_data, "train on " + settings.data + "/train",
                      "it has fewer than two folders, one for each class");
  if (lade::io::labelled_files(settings.data + "/test").class_names() != classes)
    throw lade::error(lade::errc::invalid_data, "test on " + settings.data + "/test",
                      "its folders are not called like those in " + settings.data + "/train");
  return classes;
}

struct test_result {
  std::int64_t correct = 0;
  std::int64_t images = 0;

  double percent() const {
    return 100 * static_cast<double>(correct) / static_cast<double>(images);
  }
};

// A training and its checkpoint: the network, the optimizer, the random numbers of libtorch, the
// mean loss so far, the length of the log, and the state of the data. All of it is saved in one
// file.
class training {
 public:
  training(const training_options& settings, std::vector<std::string> classes)
      : options_(settings.describe()),
        classes_(std::move(classes)),
        device_(settings.device),
        checkpoint_(settings.run + "/checkpoint"),
        log_path_(settings.run + "/log") {
    torch::manual_seed(settings.seed);
    network_ = make_network(static_cast<std::int64_t>(classes_.size()));
    network_->to(device_);
    optimizer_.emplace(network_->parameters(), torch::optim::AdamWOptions(2e-3));
    for (const auto& each : classes_) options_ += "class " + each + '\n';
    std::filesystem::create_directories(settings.run);
    if (std::filesystem::exists(checkpoint_)) load();
  }

  // Where the data resume; nothing at the beginning and after the first call.
  std::optional<lade::state> take_state() { return std::exchange(data_, std::nullopt); }

  void begin_epoch(std::uint64_t epoch) {
    epoch_ = epoch;
    const auto rate = 3e-3 * std::pow(0.75, static_cast<double>(epoch));
    static_cast<torch::optim::AdamWOptions&>(optimizer_->param_groups()[0].options()).lr(rate);
    network_->train();
  }

  // Trains on a batch. The images are those of the batch: nothing is copied on the CPU.
  void step(const lade::sample_batch& batch) {
    auto images = lade_torch::to_torch(batch.tensor()).to(device_);
    auto labels = lade_torch::to_torch(batch.labels()).to(device_);
    optimizer_->zero_grad();
    auto loss = torch::nn::functional::cross_entropy(network_->forward(images), labels);
    loss.backward();
    optimizer_->step();
    const auto value = loss.item<float>();  // waits for the device
    loss_ += value;
    ++steps_;
    log() << "epoch " << epoch_ << " step " << steps_ << " loss " << value << std::endl;
  }

  std::uint64_t steps() const noexcept { return steps_; }  // in this epoch

  void save(const lade::state& data) {
    log().flush();  // which may still have lines after the last checkpoint
    sync_file(log_path_);
    torch::serialize::OutputArchive all;
    torch::serialize::OutputArchive network;
    torch::serialize::OutputArchive optimizer;
    network_->save(network);
    optimizer_->save(optimizer);
    all.write("network", network);
    all.write("optimizer", optimizer);
    all.write("random", random_numbers().get_state(), true);
    all.write("options", options_);
    all.write("data", lade::to_json(data));
    all.write("steps", static_cast<std::int64_t>(steps_));
    all.write("loss", loss_);
    all.write("log_bytes", static_cast<std::int64_t>(std::filesystem::file_size(log_path_)));
    std::ostringstream bytes;
    all.save_to(bytes);
    replace_file(checkpoint_, bytes.str());
  }

  // How many of a test batch's images are classified correctly.
  std::int64_t count_correct(const lade::sample_batch& batch) {
    torch::NoGradGuard no_gradients;
    network_->eval();
    auto images = lade_torch::to_torch(batch.tensor()).to(device_);
    auto labels = lade_torch::to_torch(batch.labels()).to(device_);
    return network_->forward(images).argmax(1).eq(labels).sum().item<std::int64_t>();
  }

  // Ends the epoch. Returns its mean loss.
  double end_epoch(const test_result& tested) {
    const auto mean = loss_ / static_cast<double>(std::max<std::uint64_t>(steps_, 1));
    log() << "epoch " << epoch_ << " mean loss " << mean << " correct " << tested.correct << " of "
          << tested.images << std::endl;
    steps_ = 0;
    loss_ = 0;
    return mean;
  }

 private:
  at::Generator random_numbers() const { return at::globalContext().defaultGenerator(device_); }

  void load() try {
    std::istringstream bytes(read_file(checkpoint_));
    torch::serialize::InputArchive all;
    all.load_from(bytes);
    auto read = [&](const std::string& name) {
      c10::IValue value;
      all.read(name, value);
      return value;
    };
    require_same_options(checkpoint_, read("options").toStringRef(), options_);
    torch::serialize::InputArchive network;
    torch::serialize::InputArchive optimizer;
    all.read("network", network);
    all.read("optimizer", optimizer);
    network_->load(network);
    optimizer_->load(optimizer);
    torch::Tensor random;
    all.read("random", random, true);
    random_numbers().set_state(random);
    steps_ = static_cast<std::uint64_t>(read("steps").toInt());
    loss_ = read("loss").toDouble();
    log_bytes_ = static_cast<std::uintmax_t>(read("log_bytes").toInt());
    data_ = lade::state_from_json(read("data").toStringRef());
  } catch (const c10::Error& failure) {
    throw lade::error(lade::errc::invalid_data, "read " + checkpoint_,
                      failure.what_without_backtrace());
  }

  // Opened for the first line, since the data may turn out to be others than the checkpoint's.
  // Lines after the checkpoint are forgotten then.
  std::ofstream& log() {
    if (log_.is_open()) return log_;
    log_.open(log_path_, std::ios::app);
    if (!log_) lade::raise(errno, "write " + log_path_);
    if (std::filesystem::file_size(log_path_) < log_bytes_)
      throw lade::error(lade::errc::invalid_data, "resume from " + checkpoint_,
                        log_path_ + " is shorter than it was");
    std::filesystem::resize_file(log_path_, log_bytes_);
    log_.precision(std::numeric_limits<double>::max_digits10);
    return log_;
  }

  std::string options_;
  std::vector<std::string> classes_;
  torch::Device device_;
  std::string checkpoint_;
  std::string log_path_;
  torch::nn::Sequential network_;
  std::optional<torch::optim::AdamW> optimizer_;
  std::uint64_t epoch_ = 0;
  std::uint64_t steps_ = 0;
  double loss_ = 0;  // the sum over these steps
  std::uintmax_t log_bytes_ = 0;
  std::optional<lade::state> data_;
  std::ofstream log_;
};

// Takes the batches of a run, and measures how long that takes.
class timed_batches {
 public:
  explicit timed_batches(lade::run<lade::sample_batch>& from) : from_(from) {}

  std::optional<lade::sample_batch> next() {
    const auto asked = clock_type::now();
    auto batch = from_.wait_next();
    waited_ += clock_type::now() - asked;
    return batch;
  }

  std::chrono::duration<double> waited() const { return waited_; }

 private:
  lade::run<lade::sample_batch>& from_;
  std::chrono::duration<double> waited_{};
};

test_result test(training& model, lade::runtime& runtime, const batches& images) {
  test_result sum;
  for (auto& batch : runtime.run(images)) {
    sum.correct += model.count_correct(batch);
    sum.images += static_cast<std::int64_t>(batch.size());
  }
  return sum;
}

void train(const training_options& settings, lade::runtime& runtime) {
  training model(settings, find_classes(settings));
  auto state = model.take_state();
  const auto first = state ? state->epoch : 0;
  if (state)
    std::cout << "resumes in epoch " << first + 1 << " behind step " << model.steps() << std::endl;
  if (first >= settings.epochs) return;

  const auto to_test = test_batches(settings);
  lade::epochs epochs(
      runtime, training_batches(settings), settings.epochs - first,
      {.epoch = first, .ready = 16, .state = std::move(state), .require_state = true});
  for (auto& epoch : epochs) {
    const auto begin = clock_type::now();
    std::uint64_t images = 0;
    timed_batches timed(epoch);
    model.begin_epoch(epoch.epoch());
    while (auto batch = timed.next()) {
      model.step(*batch);
      images += batch->size();
      if (model.steps() % settings.save_every == 0) model.save(epoch.state());
    }
    model.save(epoch.state());
    const std::chrono::duration<double> seconds = clock_type::now() - begin;

    const auto tested = test(model, runtime, to_test);
    const auto loss = model.end_epoch(tested);
    std::printf("epoch %2llu  loss %.4f  test %5.1f %%  %6.1f s  %5.0f images/s  waited %.2f %%\n",
                static_cast<unsigned long long>(epoch.epoch() + 1), loss, tested.percent(),
                seconds.count(), static_cast<double>(images) / seconds.count(),
                100 * timed.waited() / seconds);
    std::fflush(stdout);
  }
}

// Equal losses need equal orders of additions: one number of threads, and no choice of algorithms
// by their speed.
void make_deterministic(const training_options& settings) {
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  torch::set_num_threads(static_cast<int>(settings.threads));
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
}

void run(const training_options& settings) {
  if (settings.device == "cuda" && !torch::cuda::is_available())
    throw lade::error(lade::errc::unsupported, "train on cuda", "libtorch finds no such device");
  make_deterministic(settings);
  lade::runtime runtime;
  if (settings.draw > 0)
    draw_shapes(
        runtime, settings.data,
        {.images = settings.draw, .held_out = settings.draw / 6 + 1, .seed = settings.seed});
  train(settings, runtime);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse_training_options(argc, argv));
  } catch (const usage_error& wrong) {
    std::fprintf(stderr, "train_libtorch: %s\n\n%s", wrong.what(), training_usage);
    return 2;
  } catch (const c10::Error& failure) {
    std::fprintf(stderr, "train_libtorch: %s\n", failure.what_without_backtrace());
    return 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "train_libtorch: %s\n", failure.what());
    return 1;
  }
}
