// The examples have this instead of a model: a log with a line for each step, and a checkpoint.

#pragma once

#include <lade/state.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

// A training that may be killed at any time. Saves the model, here the length of the log, and the
// state of the data together.
class training_log {
 public:
  // Resumes from the checkpoint, if there is one, and drops later lines of the log. Throws
  // lade::error for an invalid checkpoint.
  training_log(std::string checkpoint, std::string log)
      : checkpoint_(std::move(checkpoint)), path_(std::move(log)) {
    auto length = load();
    std::ofstream(path_, std::ios::app).flush();
    std::filesystem::resize_file(path_, length);
    log_.open(path_, std::ios::app);
  }

  // The state to resume from; nothing without a checkpoint and after the first call.
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
