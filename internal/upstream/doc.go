// Package upstream guards the calls to one outside system. Only so many run at the same time, and after several failures in a row a
// circuit breaker opens: then no call is made but a trial now and then, until one is answered. Recovery makes trials when nobody else
// does, and has the operations go on that the outage held up.
//
// A guard works on HTTP requests: every call of a client passes it when its Transport is the client's. Requests that wait for news
// (long polls, watches) go round it: they last, there is one for each replica, and they would hold a turn all the time.
//
// Time is the process's own, as the breaker's is; tests use testing/synctest.
package upstream
