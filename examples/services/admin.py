"""Django's own administration, with its login, sessions and CSRF tokens: an application that no load tool wrote.

Runs with `gunicorn --chdir DIRECTORY admin:application`. Its users are user0 to user99, each with the password `secret`.
The database is a file in the directory that the environment variable ADMIN_DATA names.
"""

import os
from pathlib import Path

import django
from django.conf import settings

DATA = Path(os.environ.get("ADMIN_DATA", "."))

settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": DATA / "admin.sqlite",
            "OPTIONS": {"timeout": 30},
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        "django.contrib.staticfiles",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    # Hashing passwords as slowly as it should be would hide everything else.
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    ROOT_URLCONF="admin",
    SECRET_KEY="of an example",
    SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
    STATIC_URL="static/",
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
)
django.setup()

from django.contrib import admin  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.urls import path  # noqa: E402

urlpatterns = [path("admin/", admin.site.urls)]


def prepare():
    """Creates the tables and the users, once."""
    from django.contrib.auth.models import User

    call_command("migrate", verbosity=0)
    if not User.objects.exists():
        for number in range(100):
            User.objects.create_superuser(f"user{number}", "", "secret")


prepare()
application = get_wsgi_application()
