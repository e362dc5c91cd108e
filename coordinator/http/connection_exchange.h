#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "boost/asio/io_context.hpp"
#include "boost/asio/post.hpp"
#include "coordinator/http/connection.h"
#include "coordinator/http/exchange.h"

namespace millrace::coordinator {

// The handler's side of one answer. Holds the connection weakly: an answer must
// not keep a closed connection alive.
class ConnectionExchange final : public Exchange {
 public:
  ConnectionExchange(const std::shared_ptr<Connection>& connection,
                     boost::asio::io_context& loop, uint64_t serial)
      : connection_(connection), loop_(loop), serial_(serial) {}

  void Send(HttpResponse response) override {
    Post([serial = serial_,
          response = std::move(response)](Connection& connection) mutable {
      connection.Send(serial, std::move(response));
    });
  }
  void Start(HttpResponse head, std::string idle_filler) override {
    Post([serial = serial_, head = std::move(head),
          filler = std::move(idle_filler)](Connection& connection) mutable {
      connection.StartStream(serial, std::move(head), std::move(filler));
    });
  }
  void Write(std::string data) override {
    Post([serial = serial_, data = std::move(data)](Connection& connection) {
      connection.WriteStream(serial, data);
    });
  }
  void End() override {
    Post([serial = serial_](Connection& connection) {
      connection.EndStream(serial);
    });
  }
  void Abort() override {
    Post([serial = serial_](Connection& connection) {
      connection.AbortStream(serial);
    });
  }
  void OnGone(std::function<void()> gone) override {
    boost::asio::post(loop_, [weak = connection_, serial = serial_,
                              gone = std::move(gone)]() mutable {
      if (auto connection = weak.lock()) {
        connection->SetGone(serial, std::move(gone));
      } else {
        gone();
      }
    });
  }

 private:
  template <typename Function>
  void Post(Function function) {
    boost::asio::post(
        loop_, [weak = connection_, function = std::move(function)]() mutable {
          if (auto connection = weak.lock()) {
            function(*connection);
          }
        });
  }

  const std::weak_ptr<Connection> connection_;
  boost::asio::io_context& loop_;
  const uint64_t serial_;
};

}  // namespace millrace::coordinator
