"""The environment: standard library only, because these scripts run before anything is installed."""
