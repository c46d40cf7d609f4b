// What the examples have in place of a model: a log with a line for each step, and a checkpoint.

#pragma once

#include <lade/state.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

// A training that may be killed at any time. What belongs together is saved together: the model,
// here the length of the log, and the state of the data.
class training_log {
 public:
  // Goes on where the checkpoint was saved, if there is one: what came after it is forgotten.
  // Throws lade::error for a checkpoint that is none.
  training_log(std::string checkpoint, std::string log)
      : checkpoint_(std::move(checkpoint)), path_(std::move(log)) {
    auto length = load();
    std::ofstream(path_, std::ios::app).flush();
    std::filesystem::resize_file(path_, length);
    log_.open(path_, std::ios::app);
  }

  // Where the data go on; nothing at the beginning and after the first call.
  std::optional<lade::state> take_state() { return std::exchange(state_, std::nullopt); }

  std::uint64_t epoch() const noexcept { return state_ ? state_->epoch : 0; }

  void step(const std::string& line) { log_ << line << std::endl; }

  // The file is replaced as a whole: a checkpoint is either the old or the new one.
  void save(const lade::state& data) {
    auto fresh = checkpoint_ + ".new";
    std::ofstream(fresh) << std::filesystem::file_size(path_) << '\n' << to_json(data) << '\n';
    std::filesystem::rename(fresh, checkpoint_);
  }

 private:
  std::uintmax_t load() {
    std::ifstream file(checkpoint_);
    std::uintmax_t length = 0;
    std::string data;
    if (!(file >> length >> std::ws) || !std::getline(file, data)) return 0;
    state_ = lade::state_from_json(data);
    return length;
  }

  std::string checkpoint_;
  std::string path_;
  std::ofstream log_;
  std::optional<lade::state> state_;
};
