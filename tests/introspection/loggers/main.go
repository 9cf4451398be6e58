// Run with logrus 1.9.0 and zap 1.23.0, as Debian 12 packages them, and Go 1.19: go run main.go KIND > FILE
package main

import (
	"errors"
	"os"

	"github.com/sirupsen/logrus"
	"go.uber.org/zap"
)

func rus(l *logrus.Logger) {
	l.SetOutput(os.Stdout)
	l.SetLevel(logrus.DebugLevel)
	l.WithField("key", "user:7").Debug("cache miss")
	l.WithField("port", 3000).Info("listening")
	l.WithField("ms", 812.5).Warn("slow query")
	l.WithError(errors.New("card declined")).WithField("order", "o-17").Error("payment failed")
}

func uber(c zap.Config) {
	c.OutputPaths = []string{"stdout"}
	c.Level.SetLevel(zap.DebugLevel)
	l, err := c.Build()
	if err != nil {
		panic(err)
	}
	l.Debug("cache miss", zap.String("key", "user:7"))
	l.Info("listening", zap.Int("port", 3000))
	l.Warn("slow query", zap.Float64("ms", 812.5))
	l.Error("payment failed", zap.Error(errors.New("card declined")), zap.String("order", "o-17"))
}

func main() {
	l := logrus.New()
	switch os.Args[1] {
	case "zap":
		uber(zap.NewProductionConfig())
	case "zap-console":
		uber(zap.NewDevelopmentConfig())
	case "logrus":
		l.SetFormatter(&logrus.JSONFormatter{})
		rus(l)
	case "logrus-text":
		l.SetFormatter(&logrus.TextFormatter{DisableColors: true})
		rus(l)
	}
}
