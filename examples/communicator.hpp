// What the processes of a training exchange by MPI.

#pragma once

#include <mpi.h>

#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <vector>

// All ranks that mpirun or srun has started. Every call waits for the same call on the other ranks.
// Thread: the one that called MPI_Init_thread. An error of MPI ends all ranks.
class communicator {
 public:
  communicator() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  unsigned rank() const noexcept { return static_cast<unsigned>(rank_); }
  unsigned size() const noexcept { return static_cast<unsigned>(size_); }

  // Replaces the numbers by their sums over all ranks.
  void sum(std::span<double> numbers) const {
    MPI_Allreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_DOUBLE,
                  MPI_SUM, MPI_COMM_WORLD);
  }

  // Returns the texts of all ranks on rank 0, by rank, and nothing on the others.
  std::vector<std::string> gather(const std::string& text) const {
    auto size = static_cast<int>(text.size());
    std::vector<int> sizes(this->size());
    MPI_Gather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
    std::vector<int> begins(this->size());
    std::exclusive_scan(sizes.begin(), sizes.end(), begins.begin(), 0);
    std::string all(static_cast<std::size_t>(begins.back() + sizes.back()), '\0');
    MPI_Gatherv(text.data(), size, MPI_CHAR, all.data(), sizes.data(), begins.data(), MPI_CHAR, 0,
                MPI_COMM_WORLD);
    std::vector<std::string> texts;
    for (std::size_t i = 0; rank_ == 0 && i < sizes.size(); ++i)
      texts.emplace_back(all, static_cast<std::size_t>(begins[i]),
                         static_cast<std::size_t>(sizes[i]));
    return texts;
  }

  // Returns the text of rank 0 on all ranks.
  std::string broadcast(std::string text) const {
    auto size = static_cast<int>(text.size());
    MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
    text.resize(static_cast<std::size_t>(size));
    MPI_Bcast(text.data(), size, MPI_CHAR, 0, MPI_COMM_WORLD);
    return text;
  }

 private:
  int rank_ = 0;
  int size_ = 1;
};
