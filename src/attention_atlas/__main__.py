"""python -m attention_atlas is the command attention-atlas."""

from attention_atlas.cli.app import main

if __name__ == "__main__":
    main()
