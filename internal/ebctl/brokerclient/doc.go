// Package brokerclient calls a broker: service instances over Open Service Broker 2.17, all else over the operator API. Every call
// ends within its time-out, reads a bounded answer, and fails with an AnswerError or an UnreachableError.
package brokerclient
