from tracing.cli import main

main()
