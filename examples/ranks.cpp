// A training by several processes. It may be killed at any time, and resumes with any number of
// processes.
//
//   mpirun -n 4 ranks CHECKPOINT LOGS [EPOCHS]
//
// Each rank computes the gradients of its part of every global batch. NCCL adds them up if each
// rank has a separate GPU, else MPI. Rank 0 saves the model and the state of the data to CHECKPOINT
// after every fifth step. Each rank appends a line for each step to LOGS/rank-R: the epoch, the
// step, the loss of the global batch, and the keys of the rank's samples.

#include <lade/lade.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "communicator.hpp"
#include "drawn_digit.hpp"
#include "linear_model.hpp"
#include "nccl_sums.hpp"

constexpr std::uint64_t training_samples = 1'921;  // 32 global batches, and one sample
constexpr std::uint64_t validation_samples = 999;
constexpr std::uint64_t global_batch = 60;

static std::uint64_t number(std::uint64_t index) { return index; }

// The digits of one rank. No other rank has any of them.
static lade::pipeline<drawn_digit> digits(lade::pipeline<std::uint64_t> keys,
                                          const lade::shard_options& rank) {
  return keys | lade::shard(rank) | lade::map(draw_digit, {.concurrency = 1});
}

// MPI and the launcher have to agree: a process that counts as rank 0 of 1 trains on all samples.
static lade::shard_options this_rank(const communicator& ranks) {
  auto rank = lade::rank_from_environment();
  auto text = [](auto number, auto world) {
    return "rank " + std::to_string(number) + " of " + std::to_string(world);
  };
  if (rank.rank != ranks.rank() || rank.world != ranks.size())
    throw lade::error(lade::errc::invalid_argument, "join the other ranks",
                      "the environment says " + text(rank.rank, rank.world) + ", MPI says " +
                          text(ranks.rank(), ranks.size()));
  if (global_batch % rank.world != 0)
    throw lade::error(lade::errc::invalid_argument, "share global batches",
                      std::to_string(global_batch) + " samples do not divide by " +
                          std::to_string(rank.world) + " ranks");
  rank.remainder = lade::remainder::keep;
  return rank;
}

class training {
 public:
  training(const communicator& ranks, std::string checkpoint, const std::string& logs)
      : ranks_(ranks),
        rank_(this_rank(ranks)),
        on_gpus_(nccl_sums::try_make(ranks, std::tuple_size_v<linear_model::sums>)),
        checkpoint_(std::move(checkpoint)) {
    std::filesystem::create_directories(logs);
    auto path = logs + "/rank-" + std::to_string(rank_.rank);
    log_.open(path, std::ios::app);
    if (!log_) throw lade::error(lade::errc::failed, "open " + path, "it cannot be written");
    log_ << std::setprecision(17);
    load();
  }

  bool uses_nccl() const noexcept { return on_gpus_ != nullptr; }

  void run(std::uint64_t epochs) {
    auto keys = lade::from_index(training_samples, number, {.identity = "drawn digits"}) |
                lade::shuffle({.seed = 7});
    auto batches = digits(keys, rank_) | lade::batch(global_batch / rank_.world);
    for (auto epoch = state_ ? state_->epoch : 0; epoch < epochs; ++epoch) {
      auto steps = runtime_.run(
          batches,
          {.epoch = epoch, .state = std::exchange(state_, std::nullopt), .require_state = true});
      while (step(steps))
        if (model_.steps() % 5 == 0) save(steps.state());
    }
  }

  // The share of new digits that the model classifies correctly. Each rank tests its part.
  double accuracy() {
    double counts[] = {0, 0};
    auto new_key = [](std::uint64_t index) { return training_samples + index; };
    auto keys = lade::from_index(validation_samples, new_key);
    for (auto& digit : runtime_.run(digits(keys, rank_))) {
      counts[0] += model_.classify(digit) == digit.label;
      counts[1] += 1;
    }
    ranks_.sum(counts);
    return counts[0] / counts[1];
  }

 private:
  // Returns false, on all ranks alike, when none of them has a batch left. The last global batch
  // may leave some ranks without samples: they take part with gradients of zero.
  bool step(lade::run<std::vector<drawn_digit>>& steps) {
    auto batch = steps.wait_next();
    linear_model::sums sums = {};
    if (batch)
      for (auto& digit : *batch) model_.add_to(sums, digit);
    add_up(sums);
    if (linear_model::samples_in(sums) == 0) return false;
    model_.step(sums);
    auto loss = linear_model::loss_in(sums) / linear_model::samples_in(sums);
    log_ << steps.epoch() << ' ' << model_.steps() << ' ' << loss;
    if (batch)
      for (auto& digit : *batch) log_ << ' ' << digit.key;
    log_ << std::endl;
    if (!log_) throw lade::error(lade::errc::failed, "write a line of the log");
    return true;
  }

  void add_up(linear_model::sums& sums) const {
    if (on_gpus_)
      on_gpus_->sum(sums);
    else
      ranks_.sum(sums);
  }

  // Rank 0 writes the model and the states into one file, which is either the old or the new one.
  void save(const lade::state& data) const {
    std::vector<lade::state> states;
    for (auto& text : ranks_.gather(to_json(data))) states.push_back(lade::state_from_json(text));
    if (rank_.rank != 0) return;
    auto fresh = checkpoint_ + ".new";
    std::ofstream file(fresh, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&model_), sizeof model_);
    file << to_json(lade::merge(states)) << std::flush;
    if (!file) throw lade::error(lade::errc::failed, "write " + fresh);
    std::filesystem::rename(fresh, checkpoint_);
  }

  // Resumes from the checkpoint, if there is one. Only rank 0 reads the file.
  void load() {
    static_assert(std::is_trivially_copyable_v<linear_model>);
    bool is_there = ranks_.rank() == 0 && std::filesystem::exists(checkpoint_);
    std::ifstream file(is_there ? checkpoint_ : "", std::ios::binary);
    if (is_there && (!file || file.peek() == std::ifstream::traits_type::eof()))
      throw lade::error(lade::errc::invalid_data, "read " + checkpoint_, "it cannot be read");
    auto saved = ranks_.broadcast({std::istreambuf_iterator<char>(file), {}});
    if (saved.empty()) return;
    if (saved.size() < sizeof model_)
      throw lade::error(lade::errc::invalid_data, "read " + checkpoint_, "it is cut off");
    std::memcpy(static_cast<void*>(&model_), saved.data(), sizeof model_);
    state_ = lade::state_from_json(saved.substr(sizeof model_));
  }

  const communicator& ranks_;
  lade::shard_options rank_;
  std::unique_ptr<nccl_sums> on_gpus_;
  std::string checkpoint_;
  std::ofstream log_;
  linear_model model_;
  std::optional<lade::state> state_;
  lade::runtime runtime_;
};

int main(int argc, char** argv) {
  int epochs = argc == 4 ? std::atoi(argv[3]) : 4;
  if (argc < 3 || argc > 4 || epochs < 1) {
    std::fprintf(stderr, "usage: mpirun -n RANKS ranks CHECKPOINT LOGS [EPOCHS]\n");
    return 2;
  }
  int threads = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  communicator ranks;
  try {
    training training(ranks, argv[1], argv[2]);
    training.run(static_cast<unsigned>(epochs));
    auto accuracy = training.accuracy();
    if (ranks.rank() == 0)
      std::printf("accuracy %.1f %%%s\n", 100 * accuracy,
                  training.uses_nccl() ? ", gradients by NCCL" : "");
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "ranks: rank %u: %s\n", ranks.rank(), failure.what());
    MPI_Abort(MPI_COMM_WORLD, 1);  // the other ranks would wait for ever
  }
  MPI_Finalize();
}
